import type { JsonValue } from "@bufbuild/protobuf";
import { type Case, invalid } from "./case.ts";

const codes = "[kitchensink.v1.codes]";
const note = "[kitchensink.v1.note]";
const origin = "[kitchensink.v1.origin]";

// Both REST and Connect return the same message.
const kept = (rule: string, json: JsonValue, body = JSON.stringify(json)): readonly Case[] =>
  ["POST /v1/legacies", "POST /kitchensink.v1.LegacySink/Keep"].map((request) => {
    return { rule, request, body, want: { httpStatus: 200, json } };
  });

function refused(rule: string, body: string, message: string): readonly Case[] {
  const json = { code: "invalid_argument", message };
  return [
    { rule, request: "POST /v1/legacies", body, want: invalid(message) },
    { rule, request: "POST /kitchensink.v1.LegacySink/Keep", body, want: { httpStatus: 400, json } },
  ];
}

// oxfmt-ignore
const extensions: readonly Case[] = [
  ...kept("extensions of every kind are kept", {
    name: "a",
    [note]: "b",
    [codes]: ["9007199254740993", "2"],
    [origin]: { name: "c", [note]: "d" },
    "[kitchensink.v1.tint]": "SHADE_DARK",
    "[kitchensink.v1.label]": "e",
  }),
  ...kept("an extension that is set to zero is kept", { name: "a", [note]: "", "[kitchensink.v1.label]": "" }),
  ...kept("null leaves an extension unset", { name: "a" }, `{"name":"a","${note}":null,"${codes}":null}`),
  ...kept("an extension in an Any is kept",
    { name: "a", any: { "@type": "x/kitchensink.v1.Legacy", name: "b", [note]: "c" } },
    `{"name":"a","any":{"${note}":"c","name":"b","@type":"x/kitchensink.v1.Legacy"}}`),
  ...refused("a wrong type in an extension is refused", `{"name":"a","${note}":7}`, `${note}: must be a string`),
  ...refused("a wrong value in a nested extension is refused", `{"name":"a","child":{"name":"b","${codes}":[1,"x"]}}`,
    `child.${codes}[1]: "x" is not an int64`),
  ...refused("an extension must not be set twice", `{"name":"a","${note}":"b","[kitchensink.v1.note]":"c"}`,
    `${note}: is set more than once`),
  { ...unknownExtension("[kitchensink.v1.nope]"), rule: "an unknown extension is refused" },
  { ...unknownExtension("kitchensink.v1.note"), rule: "an extension without brackets is refused" },
  { ...unknownExtension("-kitchensink.v1.note]"), rule: "an extension without the opening bracket is refused" },
  { ...unknownExtension("[kitchensink.v1.note-"), rule: "an extension without the closing bracket is refused" },
  { ...unknownExtension("[kitchensink.v1.Legacy]"), rule: "a message name as an extension is refused" },
  { rule: "another message's extension is refused", request: "POST /v1/sinks", body: `{"${note}":"a"}`,
    want: invalid(`unknown field "${note}"`) },
];

function unknownExtension(key: string): Omit<Case, "rule"> {
  const body = JSON.stringify({ name: "a", [key]: "b" });
  return { request: "POST /v1/legacies", body, want: invalid(`unknown field "${key}"`) };
}

// oxfmt-ignore
const required: readonly Case[] = [
  ...refused("a missing required field is refused", "{}", "name: is required"),
  ...refused("null for a required field is refused", '{"name":null}', "name: is required"),
  ...refused(
    "a missing required field in a nested message is refused",
    '{"name":"a","child":{"child":{}}}',
    "child.name: is required",
  ),
  ...refused(
    "a missing required field in a list item is refused",
    '{"name":"a","children":[{"name":"b"},{}]}',
    "children[1].name: is required",
  ),
  ...refused(
    "a missing required field in a map value is refused",
    '{"name":"a","byName":{"b":{}}}',
    'by_name["b"].name: is required',
  ),
  ...refused(
    "a missing required field in a oneof member is refused",
    '{"name":"a","choiceLegacy":{"number":1}}',
    "choice_legacy.name: is required",
  ),
  ...refused(
    "a missing required field in an Any is refused",
    '{"name":"a","any":{"@type":"x/kitchensink.v1.Legacy","child":{}}}',
    "any.name: is required",
  ),
  ...refused(
    "a missing required field in an extension is refused",
    `{"name":"a","${origin}":{}}`,
    `${origin}.name: is required`,
  ),
  ...kept("a required field may be empty", { name: "" }),
  { rule: "the path sets a required field", request: "PUT /v1/legacies/a", body: '{"number":7}',
    want: { httpStatus: 200, json: { name: "a", number: 7 } } },
  { rule: "the path sets a required field, without a body", request: "PUT /v1/legacies/a",
    want: { httpStatus: 200, json: { name: "a" } } },
  { rule: "the query sets a required field", request: "GET /v1/legacies?name=a&child.name=b&child.number=7",
    want: { httpStatus: 200, json: { name: "a", child: { name: "b", number: 7 } } } },
  { rule: "the query and a body field set required fields", request: "POST /v1/legacies/children?name=a",
    body: '{"name":"b"}', want: { httpStatus: 200, json: { name: "a", child: { name: "b" } } } },
  { rule: "a required field that is missing in the URL is refused", request: "GET /v1/legacies",
    want: invalid("name: is required") },
  { rule: "a nested required field that is missing in the URL is refused",
    request: "GET /v1/legacies?name=a&child.number=7", want: invalid("child.name: is required") },
  { rule: "a required field that is missing in the body is refused", request: "POST /v1/legacies/children?name=a",
    body: "{}", want: invalid("child.name: is required") },
];

// oxfmt-ignore
const closedEnums: readonly Case[] = [
  ...kept("a closed enum may be set by number", { name: "a", shade: "SHADE_DARK" }, '{"name":"a","shade":2}'),
  ...refused(
    "an unknown number of a closed enum is refused",
    '{"name":"a","shade":3}',
    'shade: "3" is not a value of enum kitchensink.v1.Shade',
  ),
  ...refused(
    "zero is refused for a closed enum without zero",
    '{"name":"a","shades":[1,0]}',
    'shades[1]: "0" is not a value of enum kitchensink.v1.Shade',
  ),
  { rule: "a closed enum may be set by number in a URL", request: "GET /v1/legacies?name=a&shades=1&shades=SHADE_DARK",
    want: { httpStatus: 200, json: { name: "a", shades: ["SHADE_LIGHT", "SHADE_DARK"] } } },
  { rule: "an unknown number of a closed enum is refused in a URL", request: "GET /v1/legacies?name=a&shade=3",
    want: invalid('"shade" is not valid: "3" is not a value of enum kitchensink.v1.Shade') },
];

/** The proto2 features that proto3 lacks. */
export const legacyCases: readonly Case[] = [...extensions, ...required, ...closedEnums];
