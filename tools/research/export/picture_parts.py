#!/usr/bin/env python3
"""Parts of a server that generates images from captions, as module files for keys of osi-fl (docs/picture_parts.md).

    python3 tools/research/export/picture_parts.py tiny scenarios/smoke/parts
    python3 tools/research/export/picture_parts.py captioner nlpconnect/vit-gpt2-image-captioning FOLDER
    python3 tools/research/export/picture_parts.py text openai/clip-vit-base-patch32 FOLDER
    python3 tools/research/export/picture_parts.py diffusion CompVis/stable-diffusion-v1-4 FOLDER

tiny: parts with random weights from seed 1 and small vocabularies, for tests. The others convert models of the
libraries transformers and diffusers, from disk or downloaded. The packages are pinned in tools/wheels/parts.txt. Does
not use mneme's engine.

Each file is an exported program (.pt2). It maps one tensor of rows [B, C, H, W] float32 to [B, D] and declares its rows
by the buffer "rows": maximum per call, channels, height, width. Token numbers are passed as floats, which hold them
exactly.
"""
import argparse
import io
import json
import os
import shutil
import sys

import torch
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "python", "mneme"))
sys.dont_write_bytecode = True
from _slim import slim  # noqa: E402


# Axes: B rows, L positions of a caption, T tokens that are attended to, D their width, V words of a vocabulary.

class CaptionEncoder(nn.Module):
    """Maps images [B, 3, side, side], normalized for the captioner, to [B, T D]."""

    def __init__(self, captioner):
        super().__init__()
        self.encoder = captioner.encoder
        self.projection = getattr(captioner, "enc_to_dec_proj", nn.Identity())

    def forward(self, x):
        return torch.flatten(self.projection(self.encoder(pixel_values=x).last_hidden_state), 1)


class CaptionDecoder(nn.Module):
    """Maps rows to logits of the next word [B, V]. A row holds the number of words, the words [L], and the encoder's
    output for the image [T D]."""

    def __init__(self, captioner, length, width):
        super().__init__()
        self.decoder, self.length, self.width = captioner.decoder, length, width
        self.words = captioner.decoder.config.vocab_size

    def forward(self, x):
        x = torch.flatten(x, 1)
        last = x[:, 0].round().clamp(1, self.length).long() - 1
        ids = x[:, 1:1 + self.length].round().clamp(0, self.words - 1).long()
        seen = x[:, 1 + self.length:].reshape(x.shape[0], -1, self.width).contiguous()
        hidden = self.decoder.transformer(input_ids=ids, encoder_hidden_states=seen, use_cache=False).last_hidden_state
        place = last.reshape(-1, 1, 1).expand(-1, 1, hidden.shape[2])
        return self.decoder.lm_head(hidden.gather(1, place).squeeze(1))


class TextTower(nn.Module):
    """Maps tokens [T], padded after the last one with its number, to the projected state at the end [B, D]."""

    def __init__(self, tower, end):
        super().__init__()
        self.text, self.projection, self.end = tower.text_model, tower.text_projection, end
        self.words = tower.config.vocab_size

    def forward(self, x):
        ids = torch.flatten(x, 1).round().clamp(0, self.words - 1).long()
        hidden = self.text(input_ids=ids).last_hidden_state
        place = (ids == self.end).int().argmax(1).reshape(-1, 1, 1).expand(-1, 1, hidden.shape[2])
        return self.projection(hidden.gather(1, place).squeeze(1))


class TextStates(nn.Module):
    """Maps tokens [T] to the states of all of them [B, T D]."""

    def __init__(self, text):
        super().__init__()
        self.text, self.words = text, text.config.vocab_size

    def forward(self, x):
        ids = torch.flatten(x, 1).round().clamp(0, self.words - 1).long()
        return torch.flatten(self.text(input_ids=ids).last_hidden_state, 1)


class Denoiser(nn.Module):
    """Maps rows of latents [c h w], a time and the states of a text [T D] to their noise [B, c h w]."""

    def __init__(self, unet, side):
        super().__init__()
        self.unet, self.side = unet, side
        self.channels, self.width = unet.config.in_channels, unet.config.cross_attention_dim

    def forward(self, x):
        x = torch.flatten(x, 1)
        numbers = self.channels * self.side * self.side
        latents = x[:, :numbers].reshape(-1, self.channels, self.side, self.side)
        told = x[:, numbers + 1:].reshape(x.shape[0], -1, self.width)
        return torch.flatten(self.unet(latents, x[:, numbers], encoder_hidden_states=told).sample, 1)


class Decoder(nn.Module):
    """Maps latents [B, c, h, w], scaled as for the denoiser, to images [B, 3 H W] with values around -1 to 1."""

    def __init__(self, vae):
        super().__init__()
        self.vae, self.scale = vae, vae.config.scaling_factor

    def forward(self, x):
        return torch.flatten(self.vae.decoder(self.vae.post_quant_conv(x / self.scale)), 1)


class Rows(nn.Module):
    """Net that declares its rows by a buffer, which a run reads from the file."""

    def __init__(self, net, rows):
        super().__init__()
        self.net = net
        self.register_buffer("rows", torch.tensor(rows))

    def forward(self, x):
        return self.net(x)


def save(net, rows, path):
    """Exports the net for up to rows[0] rows, compares the result with the net on three rows, and saves it."""
    net = Rows(net.eval().float().requires_grad_(False), rows)
    made = torch.randn(3, *rows[1:], generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        batch = torch.export.Dim("B", max=max(rows[0], 3))
        program = torch.export.export(net, (made[:2],), dynamic_shapes=({0: batch},))
        found, wanted = program.module()(made), net(made)
    if (found - wanted).abs().max() > 1e-5 * (1 + wanted.abs().max()):
        sys.exit(f"{path}: the exported program differs from the net by {(found - wanted).abs().max():g}")
    whole = io.BytesIO()
    torch.export.save(program, whole)
    with open(path, "wb") as file:
        file.write(slim(whole.getvalue()))


def export_captioner(captioner, folder, length, at_once):
    side = captioner.config.encoder.image_size
    width = captioner.config.decoder.n_embd
    encoder = CaptionEncoder(captioner).eval()
    with torch.no_grad():
        seen = encoder(torch.zeros(1, 3, side, side)).shape[1]
    save(encoder, [at_once, 3, side, side], os.path.join(folder, "caption_encoder.pt2"))
    save(CaptionDecoder(captioner, length, width), [at_once, 1, 1, 1 + length + seen],
         os.path.join(folder, "caption_decoder.pt2"))


def export_text(tower, folder, end, at_once):
    """Exports the tower with its projection, for condition = "embed512"."""
    save(TextTower(tower, end), [at_once, 1, 1, tower.config.max_position_embeddings],
         os.path.join(folder, "text_encoder.pt2"))


def export_diffusion(text, unet, vae, folder, at_once):
    save(TextStates(text), [at_once, 1, 1, text.config.max_position_embeddings],
         os.path.join(folder, "text_states.pt2"))
    side = unet.config.sample_size
    told = text.config.max_position_embeddings * unet.config.cross_attention_dim
    save(Denoiser(unet, side), [at_once, 1, 1, unet.config.in_channels * side * side + 1 + told],
         os.path.join(folder, "denoiser.pt2"))
    save(Decoder(vae), [at_once, unet.config.in_channels, side, side], os.path.join(folder, "decoder.pt2"))


# -- tiny parts -------------------------------------------------------------------------------------------------------

CAPTION_LENGTH = 16
WORDS = ("a an the and on in of with red blue black white small large cat dog bird horse house guitar person elephant "
         "giraffe man woman standing sitting lying field grass street table tree").split()
MERGES = ["a n", "a n</w>", "t h", "th e</w>", "c a", "ca t</w>", "d o", "do g</w>", "o n</w>", "r e", "re d</w>",
          "s t", "st an", "d i", "di n", "din g</w>", "stan ding</w>", "h o", "ho r", "hor s", "hors e</w>", "i n",
          "in g</w>"]


def byte_letters():
    """Letter of each byte in the vocabularies of GPT-2 and CLIP."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    letters, others = {}, 0
    for byte in range(256):
        letters[byte] = chr(byte) if byte in plain else chr(256 + others)
        others += byte not in plain
    return letters


def write_vocabularies(folder):
    letters = byte_letters()
    as_letters = lambda text: "".join(letters[byte] for byte in text.encode())
    # Captions: words with a leading space, word endings, bytes that are incomplete letters, and the end token.
    captions = [as_letters(" " + word) for word in WORDS] + [as_letters(end) for end in ("s", ",", "é", "-")]
    captions += [letters[0xC3], letters[0xFF], letters[0x0A], "<|endoftext|>"]
    with open(os.path.join(folder, "caption_words.json"), "w") as file:
        json.dump({word: number for number, word in enumerate(captions)}, file)
    tokens = [*letters.values(), *(letter + "</w>" for letter in letters.values())]
    tokens += ["".join(pair.split()) for pair in MERGES] + ["<|startoftext|>", "<|endoftext|>"]
    tokens = list(dict.fromkeys(tokens))
    with open(os.path.join(folder, "text_tokens.json"), "w") as file:
        json.dump({token: number for number, token in enumerate(tokens)}, file)
    with open(os.path.join(folder, "text_merges.txt"), "w", newline="\n") as file:
        file.write("#version: 0.2\n" + "".join(pair + "\n" for pair in MERGES))
    return len(captions), len(tokens)


def spread(net, gain):
    """Scales weights, so that results depend strongly on the inputs."""
    for parameter in net.parameters():
        if parameter.dim() > 1:
            fan_in = parameter[0].numel()
            nn.init.normal_(parameter, std=gain / fan_in ** 0.5)
        else:
            parameter.data += 0.1 * torch.randn_like(parameter)


def tiny_parts(captions, tokens):
    """Returns captioner, text tower, denoiser and autoencoder with random weights that are equal in every call."""
    from diffusers import AutoencoderKL, UNet2DConditionModel
    from transformers import (CLIPTextConfig, CLIPTextModelWithProjection, GPT2Config, ViTConfig,
                              VisionEncoderDecoderConfig, VisionEncoderDecoderModel)
    torch.manual_seed(1)
    width, end = 16, captions - 1
    vit = ViTConfig(image_size=16, patch_size=8, hidden_size=12, num_hidden_layers=2, num_attention_heads=2,
                    intermediate_size=24)
    gpt = GPT2Config(vocab_size=captions, n_positions=CAPTION_LENGTH, n_embd=width, n_layer=2, n_head=2,
                     add_cross_attention=True, is_decoder=True, bos_token_id=end, eos_token_id=end)
    captioner = VisionEncoderDecoderModel(
        config=VisionEncoderDecoderConfig.from_encoder_decoder_configs(vit, gpt, decoder_start_token_id=end,
                                                                       pad_token_id=end, eos_token_id=end))
    captioner.set_attn_implementation("eager")
    text = CLIPTextModelWithProjection(CLIPTextConfig(
        vocab_size=tokens, hidden_size=width, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=12, projection_dim=24, bos_token_id=tokens - 2, eos_token_id=tokens - 1,
        attn_implementation="eager"))
    unet = UNet2DConditionModel(
        sample_size=4, in_channels=4, out_channels=4, block_out_channels=(8, 8), layers_per_block=1, norm_num_groups=2,
        cross_attention_dim=width, attention_head_dim=2, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"))
    vae = AutoencoderKL(
        in_channels=3, out_channels=3, latent_channels=4, block_out_channels=(4, 4), layers_per_block=1,
        norm_num_groups=2, down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2)
    for net, gain in ((captioner, 1.5), (text, 1.5), (unet, 0.7), (vae, 0.7)):
        spread(net, gain)
        net.eval()
    return captioner, text, unet, vae


def tiny(folder):
    captioner, text, unet, vae = tiny_parts(*write_vocabularies(folder))
    export_captioner(captioner, folder, CAPTION_LENGTH, 16)
    export_text(text, folder, text.config.eos_token_id, 16)
    export_diffusion(text.text_model, unet, vae, folder, 16)


# -- parts with weights -----------------------------------------------------------------------------------------------

def copy_vocabulary(tokenizer, folder, names):
    """Copies vocabulary and merges in the library's file format."""
    kept = os.path.join(folder, "kept")
    tokenizer.save_pretrained(kept)
    whole = json.load(open(os.path.join(kept, "tokenizer.json")))["model"]
    shutil.rmtree(kept)
    with open(os.path.join(folder, names[0]), "w") as file:
        json.dump(whole["vocab"], file)
    if len(names) > 1:
        with open(os.path.join(folder, names[1]), "w", newline="\n") as file:
            file.write("#version: 0.2\n")
            file.writelines((pair if isinstance(pair, str) else " ".join(pair)) + "\n" for pair in whole["merges"])


def captioner(name, folder, at_once):
    from transformers import AutoTokenizer, VisionEncoderDecoderModel
    net = VisionEncoderDecoderModel.from_pretrained(name, attn_implementation="eager")
    copy_vocabulary(AutoTokenizer.from_pretrained(name), folder, ("caption_words.json",))
    export_captioner(net, folder, CAPTION_LENGTH, at_once)


def text(name, folder, at_once):
    from transformers import CLIPTextModelWithProjection, CLIPTokenizer
    tokenizer = CLIPTokenizer.from_pretrained(name)
    copy_vocabulary(tokenizer, folder, ("text_tokens.json", "text_merges.txt"))
    export_text(CLIPTextModelWithProjection.from_pretrained(name, attn_implementation="eager"), folder,
                tokenizer.eos_token_id, at_once)


def diffusion(name, folder, at_once):
    from diffusers import AutoencoderKL, UNet2DConditionModel
    from transformers import CLIPTextModel, CLIPTokenizer
    copy_vocabulary(CLIPTokenizer.from_pretrained(name, subfolder="tokenizer"), folder,
                    ("text_tokens.json", "text_merges.txt"))
    export_diffusion(CLIPTextModel.from_pretrained(name, subfolder="text_encoder", attn_implementation="eager"),
                     UNet2DConditionModel.from_pretrained(name, subfolder="unet"),
                     AutoencoderKL.from_pretrained(name, subfolder="vae"), folder, at_once)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("tiny", "captioner", "text", "diffusion"))
    parser.add_argument("names", nargs="+", metavar="MODEL FOLDER", help="tiny has no model")
    parser.add_argument("--rows", type=int, default=4, help="most rows of a call; what a device's memory holds")
    given = parser.parse_args()
    if len(given.names) != (1 if given.kind == "tiny" else 2):
        parser.error("tiny FOLDER, or KIND MODEL FOLDER")
    os.makedirs(given.names[-1], exist_ok=True)
    if given.kind == "tiny":
        return tiny(given.names[0])
    return {"captioner": captioner, "text": text, "diffusion": diffusion}[given.kind](*given.names, given.rows)


if __name__ == "__main__":
    main()
