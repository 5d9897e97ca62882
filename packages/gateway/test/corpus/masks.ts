import type { JsonValue } from "@bufbuild/protobuf";
import type { Row } from "./row.ts";
import { invalid, json } from "./row.ts";

function query(rule: string, text: string, mask: JsonValue): Row {
  return {
    rule,
    request: `GET /v1/shelves/1?readMask=${text}`,
    want: { httpStatus: 200, json: { name: "shelves/1", readMask: mask } },
  };
}

function body(rule: string, text: string): Row {
  const message: JsonValue = JSON.parse(text);
  return { rule, request: "POST /v1/shelves:get", body: text, want: { httpStatus: 200, json: message } };
}

/** Masks: how each field of a message is named, in a URL, in a body and in an answer. */
export const maskRows: readonly Row[] = [
  query("AIP-157: all fields", "*", "*"),
  query(`${json}: a lowerCamelCase name`, "builtAt,place.behind", "builtAt,place.behind"),
  query("a URL takes proto names as well", "built_at", "builtAt"),
  query("a digit behind an underscore", "address_line_1,field_1x", "address_line_1,field_1x"),
  query("a name that is none of the fields stays what it is", "addressLine1", "addressLine1"),
  query("a proto name in camelCase", "%60camelCase%60", "`camelCase`"),
  query("a proto name with a capital in front", "`Capital`", "`Capital`"),
  query("an underscore in front", "_leading", "Leading"),
  query("an underscore at the end, and two", "trailing_,two__underscores", "trailing_,two__underscores"),
  query("an empty mask", "", ""),
  body(
    "every field in a body and in an answer",
    '{"readMask":"*,address_line_1,field_1x,`camelCase`,Leading,trailing_"}',
  ),
  body("masks in a list", '{"moreMasks":["address_line_1","fooBar",""]}'),
  body("masks in a map", '{"masksByName":{"a":"address_line_1","__proto__":"*"}}'),
  body("a mask in a oneof", '{"choiceMask":"`camelCase`"}'),
  body("a mask in a message in a message", '{"name":"a","inner":{"inner":{"readMask":"field_1x"},"name":"b"}}'),
  body("a message without a mask", '{"name":"a","inner":{}}'),
  {
    rule: "a mask in an Any",
    request: "POST /v1/sinks",
    body: '{"any":{"@type":"x/kitchensink.v1.GetShelfRequest","name":"a","readMask":"address_line_1"}}',
    want: {
      rpc: "Create",
      sink: { any: { "@type": "x/kitchensink.v1.GetShelfRequest", name: "a", readMask: "address_line_1" } },
    },
  },
  {
    rule: "a mask that is an Any",
    request: "POST /v1/sinks",
    body: '{"any":{"@type":"x/google.protobuf.FieldMask","value":"address_line_1"}}',
    want: { rpc: "Create", sink: { any: { "@type": "x/google.protobuf.FieldMask", value: "address_line_1" } } },
  },
  ...["foo_bar", "_leading", "`builtAt`x", "a b", "built-at", "a,", "`built_at`"].map((text) => ({
    rule: `${json}: one spelling for a name in JSON`,
    request: "POST /v1/shelves:get",
    body: JSON.stringify({ readMask: text }),
    want: invalid("read_mask: "),
  })),
];
