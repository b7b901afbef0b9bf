"""Byte-level BPE from a tokenizer.json, as plainly as it can be written. Needs python3-regex."""
import json

import regex


def byte_alphabet():
    """The printable character that stands for each byte in the vocabulary."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    alphabet = {byte: chr(byte) for byte in printable}
    others = [byte for byte in range(256) if byte not in alphabet]
    alphabet.update({byte: chr(256 + index) for index, byte in enumerate(others)})
    return alphabet


class Tokenizer:
    """`special` maps the text of each special token to its id."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            description = json.load(file)
        self.vocabulary = description["model"]["vocab"]
        merges = description["model"]["merges"]
        pairs = (tuple(merge.split(" ") if isinstance(merge, str) else merge) for merge in merges)
        self.ranks = {pair: rank for rank, pair in enumerate(pairs)}
        self.special = {token["content"]: token["id"] for token in description["added_tokens"]}
        self.special_pattern = regex.compile("(" + "|".join(map(regex.escape, self.special)) + ")")
        self.word_pattern = regex.compile(description["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"])
        self.alphabet = byte_alphabet()
        self.memo = {}

    def encode(self, text):
        """Token ids of a text; special tokens match anywhere in it."""
        ids = []
        for part in self.special_pattern.split(text):
            if part in self.special:
                ids.append(self.special[part])
                continue
            for word in self.word_pattern.findall(part):
                ids += self._encode_word("".join(self.alphabet[byte] for byte in word.encode()))
        return ids

    def _encode_word(self, word):
        if word not in self.memo:
            # ignore_merges: a word of the vocabulary stays whole.
            parts = [word] if word in self.vocabulary else self._merge(list(word))
            self.memo[word] = [self.vocabulary[part] for part in parts]
        return self.memo[word]

    def _merge(self, parts):
        while len(parts) > 1:
            pairs = list(zip(parts, parts[1:]))
            best = min(range(len(pairs)), key=lambda i: self.ranks.get(pairs[i], 1 << 30))
            if pairs[best] not in self.ranks:
                break
            parts[best:best + 2] = ["".join(pairs[best])]
        return parts
