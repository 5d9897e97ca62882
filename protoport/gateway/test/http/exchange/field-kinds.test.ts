import { expect, test } from "vitest";
import * as fieldKinds from "../../../src/http/exchange/field-kinds.ts";
// oxfmt-ignore
import { type FieldName, reservedResponseFields, fieldsNotForwarded, fieldsNotCopiedFromFramework,
  connectionSpecificFields, fieldsNotSetByGrpcMetadata, fieldsNotSentAsMetadata, fieldsSetByFetch,
  fieldsSetByGrpcClient, fieldsSetByHttp1 } from "../../../src/http/exchange/index.ts";

// oxfmt-ignore
const rules = Object.entries({
  connectionSpecificFields, fieldsSetByHttp1, reservedResponseFields, fieldsNotSentAsMetadata, fieldsSetByGrpcClient,
  fieldsSetByFetch, fieldsNotForwarded, fieldsNotSetByGrpcMetadata, fieldsNotCopiedFromFramework,
});

/** The rules that apply to each field, in the order of {@link rules}, with x if the rule applies. */
// oxfmt-ignore
const cases: Readonly<Record<FieldName, string>> = {
  connection:            "xxxxxxxx.",
  "keep-alive":          "xxxxxxxx.",
  "proxy-connection":    "x.xxx.xx.",
  "transfer-encoding":   "xxxxxxxxx",
  upgrade:               "xxxxxxxx.",
  "http2-settings":      "..xxxxxx.",
  te:                    "..xxxxxx.",
  trailer:               "..xxxxxxx",
  "content-length":      ".xxxxxx.x",
  "content-encoding":    "..x...x.x",
  "content-type":        "..x.x.x.x",
  "accept-ranges":       "........x",
  "content-digest":      "........x",
  "content-disposition": "........x",
  "content-language":    "........x",
  "content-location":    "........x",
  "content-range":       "........x",
  etag:                  "........x",
  "last-modified":       "........x",
  "repr-digest":         "........x",
  date:                  "..xx.....",
  expect:                ".....x.x.",
  host:                  "....xxxx.",
};

test.each(Object.entries(cases))("the header field %s has the expected kinds", (name, marks) => {
  const concerned = rules.filter(([, names]) => names.has(name)).map(([rule]) => rule);
  // Otherwise the field could be left out of the table.
  expect(concerned).not.toEqual([]);
  expect(concerned).toEqual(rules.filter((_, at) => marks[at] === "x").map(([rule]) => rule));
});

test("the table of header fields tests every field kind", () => {
  const declared = Object.entries(fieldKinds).flatMap(([name, value]) => (value instanceof Set ? [name] : []));
  expect(declared.toSorted()).toEqual(rules.map(([rule]) => rule).toSorted());
});
