"""Trains the demo model's tokenizer: byte-level BPE with the splitting rules of Llama 3 and 4096 tokens."""
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from examples import example
from prompt import BEGIN_OF_TEXT, PREAMBLE, QUERY, SPECIAL_TOKENS

VOCABULARY_SIZE = 4096
CORPUS_WORLDS = 6000
CORPUS_FIRST_SEED = 10_000_000
LLAMA3_SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
                r"|\s*[\r\n]+|\s+(?!\S)|\s+")


def corpus():
    for index in range(CORPUS_WORLDS):
        documents, questions = example(CORPUS_FIRST_SEED + index)
        yield PREAMBLE
        yield from documents
        for question in questions:
            yield QUERY.format(question=question.text)
            yield question.answer


def train_tokenizer():
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3_SPLIT), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        special_tokens=SPECIAL_TOKENS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(
            single=f"{BEGIN_OF_TEXT} $A",
            pair=f"{BEGIN_OF_TEXT} $A {BEGIN_OF_TEXT} $B",
            special_tokens=[(BEGIN_OF_TEXT, tokenizer.token_to_id(BEGIN_OF_TEXT))],
        ),
    ])
    return tokenizer
