#!/usr/bin/env python3
"""Steps of GLFC's official classes (Dong et al. 2022, CVPR) on a CPU.

    tools/research/official/glfc.py CHECKOUT [tests/golden]

CHECKOUT is a clone of github.com/conditionWang/FCIL at the commit below. It has no license, so no part of it is stored.
Writes glfc/steps.json with the content that lga.py writes for LGA, without noise on features, which GLFC lacks.
"""
import sys

import torch

import lga
import shim


class Glfc(lga.Lga):
    NAME = "glfc"
    REPOSITORY = "https://github.com/conditionWang/FCIL"
    COMMIT = "11e161a9d57ecd14126201b7bd9a424137749ee5"
    SOURCES = "/src"

    def import_code(self):
        import GLFC
        import myNetwork
        import ProxyServer
        self.code, self.proxy, self.nets, self.client_class = GLFC, ProxyServer, myNetwork, GLFC.GLFC_model

    def make_client(self):
        return self.client_class(lga.CLASSES, self.extractor(), 4, lga.TASK_SIZE, 20, 1, 0.1, None, "cpu",
                                 self.encoder())

    def make_server(self):
        return self.proxy.proxyServer("cpu", lga.RATE, lga.CLASSES, self.extractor(), self.encoder(), None)

    def encoder_shape(self):
        return ()


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    sys.exit(shim.main(Glfc(), lga.steps, __doc__))
