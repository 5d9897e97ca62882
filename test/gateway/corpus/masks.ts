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

/** Masks: how the fields of a message are named, in a URL, in a body and in an answer. */
export const maskRows: readonly Row[] = [
  query("AIP-157: all fields", "*", "*"),
  query(`${json}: a lowerCamelCase name`, "builtAt,place.behind", "builtAt,place.behind"),
  query("a URL takes proto names as well", "built_at", "builtAt"),
  query("a name that is none of the fields stays what it is", "addressLine1", "addressLine1"),
  query("an underscore in front", "_leading", "Leading"),
  query("an empty mask", "", ""),
  ...["foo_bar", "_leading", "address_line_1", "`builtAt`", "a b", "built-at", "a,"].map((text) => ({
    rule: `${json}: one spelling for a name in JSON`,
    request: "POST /v1/shelves:get",
    body: JSON.stringify({ readMask: text }),
    want: invalid("read_mask: "),
  })),
];
