"""Validates messages with protovalidate: `validate.py DESCRIPTORS MESSAGES VERDICTS`.

MESSAGES has a JSON object with type and base64 in each line; VERDICTS gets the violations or the error of each.
"""

import base64
import json
import sys

import protovalidate
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

descriptors, messages, verdicts = sys.argv[1:]
files = descriptor_pb2.FileDescriptorSet()
with open(descriptors, "rb") as file:
    files.ParseFromString(file.read())
pool = descriptor_pool.DescriptorPool()
for each in files.file:
    pool.Add(each)


validator = protovalidate.Validator()


def path_of(path):
    def part(element):
        key = element.subscript
        return element.field_name + ("" if key is None else f"[{json.dumps(key.value, ensure_ascii=False)}]")

    return "" if path is None else ".".join(part(element) for element in path.elements)


def verdict_of(line):
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName(line["type"]))()
    message.ParseFromString(base64.b64decode(line["message"]))
    try:
        found = validator.collect_violations(message)
    except protovalidate.CompilationError:
        return {"error": "compilation"}
    except Exception:
        return {"error": "runtime"}
    return {
        "violations": sorted(f"{path_of(each.proto.field)} {each.proto.rule_id} {each.proto.for_key}" for each in found)
    }


with open(messages) as lines, open(verdicts, "w") as out:
    for text in lines:
        out.write(json.dumps(verdict_of(json.loads(text))) + "\n")
