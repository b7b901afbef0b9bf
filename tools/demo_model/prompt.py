"""What a prompt of the demo model is made of; models/rag-demo-14m/rag_template.json says the same."""

BEGIN_OF_TEXT = "<|begin_of_text|>"
END_OF_TURN = "<|eot_id|>"
PADDING = "<|pad|>"
SPECIAL_TOKENS = [
    BEGIN_OF_TEXT, "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", END_OF_TURN, PADDING,
    *(f"<|reserved_{index}|>" for index in range(10))
]

PREAMBLE = ("<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\n"
            "You are an intelligent AI assistant. Please answer questions based on the user's instructions. Below are "
            "some reference documents that may help you in answering the user's question.\n\n")
QUERY = ("<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n"
         "Please write a high-quality answer for the given question using only the provided search documents (some of "
         "which might be irrelevant).\n"
         "Question: {question}<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n")
