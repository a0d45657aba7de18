#!/usr/bin/env python3
"""Results of the tiny parts in the libraries transformers and diffusers, the reference for mneme's results.

    python3 tools/research/export/picture_parts_reference.py scenarios/smoke/parts tests/golden/picture_parts

Made with Python 3.11, torch 2.11.0, transformers 5.23.0 and diffusers 0.42.1. The parts are those of
picture_parts.py tiny; images and noise are computed from names by formula(). Does not use mneme.
"""
import json
import os
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
from picture_parts import CAPTION_LENGTH, TextTower, tiny_parts  # noqa: E402
from torchvision_reference import formula  # noqa: E402

TEXTS = ["", "a cat", "The  Dog is standing\ton the horse", "can't we'll I'D he's '' rock'n'roll", "2 dogs, 13 cats!?",
         "a" * 100, "Ünïcode ÇA ǅ Ωμέγα ЖУК", "日本語 text 한국", "½ x² ٣ Ⅷ 五", "emoji \U0001f600!! —“quoted”",
         "İstanbul ẞ",
         "\u00a0no-break\u2003space\u3000", "x<|endoftext|>y <|startoftext|>", "a b c d e f g h i j k l m n o p",
         "under_score #hash @at 100%", "\U0001d400 math \U00010400 deseret", "na\ufb01ve \u0e01\u0e33 \u0915\u093f"]
CAPTION_BYTES = [[0, 3, 16, 33], [1, 12, 35, 34, 9], [37, 0, 38, 0, 39, 36, 35], [39, 5, 39], [], [40, 2, 40, 7, 40]]


def numbers(tensor):
    return [float(f"{value:.7g}") for value in tensor.flatten().tolist()]


def text_cases(folder, tower):
    from transformers import CLIPTokenizer
    tokenizer = CLIPTokenizer(vocab=os.path.join(folder, "text_tokens.json"),
                              merges=os.path.join(folder, "text_merges.txt"))
    def ids(text, length):
        return tokenizer(text, padding="max_length", max_length=length, truncation=True)["input_ids"]
    cases = [{"text": text, "ids": ids(text, 77)} for text in TEXTS]
    shown = torch.tensor([ids(text, 12) for text in TEXTS[:6]])
    with torch.no_grad():
        found = tower(shown)
        own = TextTower(tower, tower.config.eos_token_id)(shown.float())
    assert (found.text_embeds - own).abs().max() < 1e-6 # checks that our cut is the library's
    return {"tokens": cases, "context": 12, "embeddings": [numbers(row) for row in found.text_embeds],
            "states": [numbers(row) for row in found.last_hidden_state]}


def caption_cases(folder, captioner):
    from transformers import GPT2Tokenizer
    vocabulary = json.load(open(os.path.join(folder, "caption_words.json")))
    tokenizer = GPT2Tokenizer(vocab=vocabulary, merges=[])
    pictures = torch.from_numpy(formula("pictures", 8 * 3 * 16 * 16)).reshape(8, 3, 16, 16)
    def written(ids):
        return tokenizer.decode(ids, skip_special_tokens=True).strip()
    cases = []
    for beams in (1, 2, 4, 7):
        with torch.no_grad():
            found = captioner.generate(pixel_values=pictures, max_length=CAPTION_LENGTH, num_beams=beams,
                                       do_sample=False)
        cases.append({"beams": beams, "ids": [row.tolist() for row in found], "texts": [written(row) for row in found]})
    for case in cases:
        print(case["beams"], case["texts"])
    with torch.no_grad():
        seen = captioner.encoder(pixel_values=pictures).last_hidden_state
        seen = captioner.enc_to_dec_proj(seen)
    return {"searches": cases, "seen": [numbers(row) for row in seen[:2]],
            "decoded": [{"ids": ids, "text": written(ids)} for ids in CAPTION_BYTES]}


def generation_cases(text, unet, vae):
    """Stable Diffusion's loop: guidance by two calls, DDIM by its configuration."""
    from diffusers import DDIMScheduler
    told = torch.from_numpy(formula("told", 12 * 16)).reshape(1, 12, 16)
    nothing = torch.from_numpy(formula("nothing", 12 * 16)).reshape(1, 12, 16)
    noise = torch.from_numpy(formula("noise", 2 * 4 * 4 * 4)).reshape(2, 4, 4, 4)
    cases = []
    for steps, guidance in ((5, 7.5), (50, 2.0), (3, 1.0)):
        scheduler = DDIMScheduler(num_train_timesteps=1000, beta_start=0.00085, beta_end=0.012,
                                  beta_schedule="scaled_linear", clip_sample=False, set_alpha_to_one=False,
                                  steps_offset=1)
        scheduler.set_timesteps(steps)
        latents = noise.clone()
        with torch.no_grad():
            for time in scheduler.timesteps:
                both = unet(torch.cat([latents] * 2), time,
                            encoder_hidden_states=torch.cat([nothing.expand(2, -1, -1), told.expand(2, -1, -1)])).sample
                without, under = both.chunk(2)
                latents = scheduler.step(without + guidance * (under - without), time, latents).prev_sample
            pictures = vae.decode(latents / vae.config.scaling_factor).sample
        cases.append({"steps": steps, "guidance": guidance, "times": scheduler.timesteps.tolist(),
                      "latents": numbers(latents), "pictures": numbers((pictures / 2 + 0.5).clamp(0, 1))})
        print(steps, latents.std().item(), pictures.std().item())
    with torch.no_grad():
        once = unet(noise, torch.tensor([801, 1]), encoder_hidden_states=torch.cat([told, nothing])).sample
    return {"cases": cases, "denoised_once": numbers(once)}


def check_counts():
    """Checks the numbers of parameters of the published nets, by their configurations."""
    from transformers import (CLIPTextConfig, CLIPTextModelWithProjection, GPT2Config, ViTConfig,
                              VisionEncoderDecoderConfig, VisionEncoderDecoderModel)
    captioner = VisionEncoderDecoderConfig.from_encoder_decoder_configs(ViTConfig(), GPT2Config())
    with torch.device("meta"):
        for net, count in ((CLIPTextModelWithProjection(CLIPTextConfig()), 63_428_096),
                           (VisionEncoderDecoderModel(config=captioner), 239_195_904)):
            found = sum(value.numel() for value in net.parameters())
            if found != count:
                sys.exit(f"{type(net).__name__} has {found} parameters, and {count} are known")


def main():
    check_counts()
    folder, into = sys.argv[1:]
    tokens = len(json.load(open(os.path.join(folder, "text_tokens.json"))))
    captions = len(json.load(open(os.path.join(folder, "caption_words.json"))))
    captioner, text, unet, vae = tiny_parts(captions, tokens)
    os.makedirs(into, exist_ok=True)
    for name, record in (("texts", text_cases(folder, text)), ("captions", caption_cases(folder, captioner)),
                         ("generation", generation_cases(text, unet, vae))):
        with open(os.path.join(into, name + ".json"), "w") as file:
            file.write(json.dumps(record, separators=(",", ":")).replace("},{", "},\n{") + "\n")


if __name__ == "__main__":
    main()
