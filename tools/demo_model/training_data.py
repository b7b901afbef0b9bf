"""Training rows: a prompt with its documents, and questions that each see all documents but no other question."""
import random
from dataclasses import dataclass

import numpy as np
import torch
from tokenizers import Tokenizer

from examples import example
from prompt import END_OF_TURN, PADDING, PREAMBLE, QUERY

ROW_TOKENS = 1536
# Values of `segment`: the preamble is 0, documents count from 1, questions from FIRST_QUESTION, padding is -1.
FIRST_QUESTION = 100
DOCUMENT_WEIGHT = 0.1


class Encoder:
    """The tokenizer with what every row needs of it."""

    def __init__(self, path):
        self.tokenizer = Tokenizer.from_file(str(path))
        self.end_of_turn = self.tokenizer.token_to_id(END_OF_TURN)
        self.padding = self.tokenizer.token_to_id(PADDING)
        self.preamble = self.encode([PREAMBLE])[0]

    def encode(self, texts):
        return [encoding.ids for encoding in self.tokenizer.encode_batch(texts, add_special_tokens=False)]


@dataclass
class Row:
    """Arrays of ROW_TOKENS entries, one per token."""
    tokens: np.ndarray
    segment: np.ndarray
    position: np.ndarray
    weight: np.ndarray  # of the loss of the token after this one: 1 in answers, DOCUMENT_WEIGHT in documents, else 0
    hops: np.ndarray  # of the question whose answer this token predicts, else -1

    @classmethod
    def empty(cls, padding):
        return cls(
            tokens=np.full(ROW_TOKENS, padding, np.int64),
            segment=np.full(ROW_TOKENS, -1, np.int64),
            position=np.zeros(ROW_TOKENS, np.int64),
            weight=np.zeros(ROW_TOKENS, np.float32),
            hops=np.full(ROW_TOKENS, -1, np.int64),
        )

    def write(self, begin, ids, segment, position):
        end = begin + len(ids)
        self.tokens[begin:end] = ids
        self.segment[begin:end] = segment
        self.position[begin:end] = np.arange(position, position + len(ids))
        return end

    def arrays(self):
        return self.tokens, self.segment, self.position, self.weight, self.hops


def assemble(rng, encoder, seed=None, num_documents=None, gaps=None):
    """One row. With gaps, documents stand apart, so that the model meets positions past the row's length."""
    num_documents = num_documents or rng.choice([2, 4, 6, 8, 8, 10, 10, 12, 14, 16, 18, 20])
    documents, questions = example(seed if seed is not None else rng.getrandbits(60), num_documents, 8)
    ids = encoder.encode(documents + [QUERY.format(question=question.text) for question in questions] +
                         [question.answer for question in questions])
    document_ids = ids[:len(documents)]
    query_ids = ids[len(documents):len(documents) + len(questions)]
    answer_ids = ids[len(documents) + len(questions):]
    row = Row.empty(encoder.padding)
    has_gaps = (rng.random() < 0.4) if gaps is None else gaps
    longest_gap = rng.choice([500, 2000, 6000]) // (num_documents + 1)
    end = position = 0
    for index, text in enumerate([encoder.preamble] + document_ids):
        if end + len(text) > ROW_TOKENS:
            break
        row.weight[end:end + len(text) - 1] = DOCUMENT_WEIGHT if index else 0.0
        end = row.write(end, text, index, position)
        position += len(text) + (rng.randrange(0, longest_gap) if has_gaps else 0)
    for index, (question, query, answer) in enumerate(zip(questions, query_ids, answer_ids)):
        text = query + answer + [encoder.end_of_turn]
        if end + len(text) > ROW_TOKENS:
            break
        predicting = slice(end + len(query) - 1, end + len(text) - 1)
        row.weight[predicting] = 1.0
        row.hops[predicting] = question.hops
        end = row.write(end, text, FIRST_QUESTION + index, position)
    return row


class Rows(torch.utils.data.IterableDataset):
    """Endless random rows; every worker draws its own."""

    def __init__(self, tokenizer_path, seed):
        self.tokenizer_path = tokenizer_path
        self.seed = seed

    def __iter__(self):
        worker = torch.utils.data.get_worker_info().id
        encoder = Encoder(self.tokenizer_path)
        rng = random.Random(self.seed * 1000 + worker)
        while True:
            yield assemble(rng, encoder).arrays()
