import type { JsonValue } from "@bufbuild/protobuf";
import { type Case, invalid, json } from "./case.ts";

function query(rule: string, text: string, mask: JsonValue): Case {
  const want = { httpStatus: 200, json: { name: "shelves/1", readMask: mask } };
  return { rule, request: `GET /v1/shelves/1?readMask=${text}`, want };
}

function body(rule: string, text: string): Case {
  const message: JsonValue = JSON.parse(text);
  return { rule, request: "POST /v1/shelves:get", body: text, want: { httpStatus: 200, json: message } };
}

// The handler echoes the mask, which cannot be written. field-mask.test.ts tests what it contains.
const withoutJson = (rule: string, text: string): Case => ({
  rule: `field_mask.proto, JSON Encoding: ${rule}`,
  request: `GET /v1/shelves/1?readMask=${text}`,
  want: { httpStatus: 500, code: 13, message: "" },
});

/** Field masks in a URL, in a body and in a response. */
// oxfmt-ignore
export const maskCases: readonly Case[] = [
  query("AIP-157: * selects all fields", "*", "*"),
  query(`${json}: a mask contains lowerCamelCase names`, "builtAt,place.behind", "builtAt,place.behind"),
  query("a mask in a URL may contain proto names", "built_at", "builtAt"),
  withoutJson("a name with a digit after an underscore has no JSON form", "address_line_1"),
  withoutJson("a proto name in camelCase has no JSON form", "%60camelCase%60"),
  query("a leading underscore becomes a capital letter", "_leading", "Leading"),
  query("a mask may be empty", "", ""),
  body("a mask in a body and in a response", '{"readMask":"*,addressLine1,Leading"}'),
  body("masks in a list", '{"moreMasks":["addressLine1","fooBar",""]}'),
  body("masks in a map", '{"masksByName":{"a":"addressLine1","__proto__":"*"}}'),
  body("a mask in a oneof", '{"choiceMask":"Leading"}'),
  body("a mask in a message in a message", '{"name":"a","inner":{"inner":{"readMask":"builtAt"},"name":"b"}}'),
  body("a message without a mask", '{"name":"a","inner":{}}'),
  { rule: "a mask in an Any", request: "POST /v1/sinks",
    body: '{"any":{"@type":"x/kitchensink.v1.GetShelfRequest","name":"a","readMask":"addressLine1"}}',
    want: { rpc: "Create",
      sink: { any: { "@type": "x/kitchensink.v1.GetShelfRequest", name: "a", readMask: "addressLine1" } } } },
  { rule: "a mask that is an Any", request: "POST /v1/sinks",
    body: '{"any":{"@type":"x/google.protobuf.FieldMask","value":"addressLine1"}}',
    want: { rpc: "Create", sink: { any: { "@type": "x/google.protobuf.FieldMask", value: "addressLine1" } } } },
  ...["foo_bar", "_leading", "`builtAt`x", "a b", "built-at", "a,", "`built_at`"].map((text) => ({ rule: `${json}: one spelling for a name in JSON`,
    request: "POST /v1/shelves:get",
    body: JSON.stringify({ readMask: text }),
    want: invalid("read_mask: "),
  })),
];
