import type { JsonValue } from "@bufbuild/protobuf";
import { jsonContentTypes, notJsonContentTypes } from "../../../../testing/src/gateway/json-content-types.ts";
import { type Case, http, invalid, json, unsupportedMediaType } from "./case.ts";

function update(rule: string, field: string, body: string, sink: JsonValue): Case {
  return { rule, request: `PATCH /v1/body/${field}`, body, want: { rpc: "Update", sink } };
}

// oxfmt-ignore
const fields: readonly Case[] = [
  update(`${http}: a body field of type Value that is null`, "value", "null", { value: null }),
  update(`${http}: a body field that is a member of a oneof`, "choice", '{"text":"a"}', { choiceNested: { text: "a" },
  }),
  update(`${json}: null leaves a field unset`, "tags", "null", {}),
  update("an empty body leaves the field unset", "tags", "", {}),
  { rule: "the query must not set the body's field", request: "PATCH /v1/body/tags?tags=a", body: '["b"]',
    want: invalid("is already set by the path or the body") },
  { rule: "the query must not set a field inside the body", request: "PATCH /v1/nested/a?nested.number=7", body: "{}",
    want: invalid("is already set by the path or the body") },
  { rule: "the query must not set the body's field, even if the body is empty", request: "PATCH /v1/body/tags?tags=a",
    want: invalid("is already set by the path or the body") },
  { rule: "the body and the query must not set members of one oneof", request: "PATCH /v1/body/choice?choiceText=a",
    body: "{}", want: invalid("cannot be set together") },
  { rule: "AIP-134: an update mask in the query", request: "PATCH /v1/nested/a?mask=number", body: '{"number":"7"}',
    want: { rpc: "Update", sink: { nested: { text: "a", number: "7" }, mask: "number" } } },
  { rule: "the body must not set a path field", request: "PATCH /v1/nested/a", body: '{"text":"b"}',
    want: invalid("text: is already set by the path") },
  { rule: "the body must not repeat a path field with an equal value", request: "PATCH /v1/nested/a",
    body: '{"text":"a"}', want: invalid("text: is already set by the path") },
  { rule: "the body must not set a nested path field", request: "PATCH /v1/inner/a",
    body: '{"inner":{"inner":{"text":"b"}}}', want: invalid("nested.inner.inner.text: is already set by the path") },
  { rule: "the body may set fields next to a nested path field", request: "PATCH /v1/inner/a",
    body: '{"text":"b","inner":{"inner":{"number":7}}}',
    want: { rpc: "Update", sink: { nested: { text: "b", inner: { inner: { text: "a", number: "7" } } } } } },
  { rule: "a field with the same name in another message is not bound", request: "PATCH /v1/children/a",
    body: '{"fString":"b"}', want: { rpc: "Update", sink: { fString: "a", child: { fString: "b" } } } },
  { rule: "an error names the body's field", request: "PATCH /v1/body/int64", body: '"x"',
    want: invalid('f_int64: "x" is not an int64') },
  { rule: "an error contains the path to a field inside the body", request: "PATCH /v1/nested/a",
    body: '{"number":"x"}', want: invalid('nested.number: "x" is not an int64') },
  { rule: "an unknown field inside the body's field is refused", request: "PATCH /v1/nested/a", body: '{"x":1}',
    want: invalid('unknown field "nested.x"') },
  { rule: "text after the body's JSON value is refused", request: "PATCH /v1/body/int64", body: "7 8",
    want: invalid("not valid JSON") },
];

// oxfmt-ignore
const collisions: readonly Case[] = [
  { rule: 'body "*" must not set a path field', request: "PUT /v1/sinks/7", body: '{"fInt64":"9"}',
    want: invalid("f_int64: is already set by the path") },
  { rule: 'body "*" must not set a path field to null', request: "PUT /v1/sinks/7", body: '{"f_int64":null}',
    want: invalid("f_int64: is already set by the path") },
  { rule: 'body "*" must not set a nested path field', request: "PUT /v1/nested/a/sinks",
    body: '{"nested":{"text":"b"}}', want: invalid("nested.text: is already set by the path") },
  { rule: 'body "*" and the path must not set members of one oneof', request: "PUT /v1/choices/a",
    body: '{"choiceNumber":1}', want: invalid("cannot be set together") },
  { rule: `${http}: with body "*", the query must not set any field`, request: "POST /v1/sinks?fString=a", body: "{}",
    want: invalid("is already set by the path or the body") },
  { rule: `${http}: if one field is the body, the query must not set a path field`,
    request: "PATCH /v1/children/a?fString=b", body: "{}", want: invalid("is already set by the path or the body") },
  { rule: "an unknown parameter is refused with a body", request: "POST /v1/sinks?x=1", body: "{}",
    want: invalid('unknown query parameter "x"') },
];

// oxfmt-ignore
const presence: readonly Case[] = [
  { rule: "zero bytes are not a body for any content type", request: "POST /v1/sinks", contentType: "text/plain",
    want: { rpc: "Create", sink: {} } },
  { rule: `${http}: a rule without a body refuses a body`, request: "DELETE /v1/sinks/7", body: '{"fInt64":"9"}',
    want: invalid("does not accept a body") },
  { rule: "RFC 9110 §9.3.5: zero bytes on DELETE are not a body", request: "DELETE /v1/sinks/7", body: "",
    contentType: "text/plain", want: { httpStatus: 200, json: {} } },
  { rule: "a DELETE rule may have a body", request: "DELETE /v1/bodies/7", body: '{"text":"a"}',
    want: { httpStatus: 200, json: {} } },
  { rule: "a DELETE rule with a body refuses an invalid body", request: "DELETE /v1/bodies/7", body: '{"text":1}',
    want: invalid("nested.text: must be a string") },
];

const post = { request: "POST /v1/sinks", body: '{"fString":"a"}' };
const created = { rpc: "Create", sink: { fString: "a" } };
const accepted = ["application/problem+json", "application/vnd.shop.v1+json;charset=utf-8", ...jsonContentTypes];
const lists = ["*/*", "application/json, text/plain"];
const refused = ["text/plain", "text/json", "multipart/form-data; boundary=x", ...notJsonContentTypes];
const forms = ["application/x-www-form-urlencoded", "Application/X-WWW-Form-Urlencoded; charset=utf-8"];
const unsupported = (rule: string, contentType: string, hint?: string): Case => ({
  ...post,
  rule,
  contentType,
  want: unsupportedMediaType(contentType, hint),
});
const ofOthers = "RFC 9110 §15.5.16: an unsupported content type gets 415";
const ofJson = "RFC 8259 §11 and RFC 6839 §3.1: JSON in UTF-8 is accepted";
const ofCurl = "the error for curl's default content type names --json";

const contentTypes: readonly Case[] = [
  ...accepted.map((contentType) => ({ ...post, rule: ofJson, contentType, want: created })),
  ...[...refused, "json", "application/", "+json", ...lists].map((type) => unsupported(ofOthers, type)),
  ...forms.map((type) => unsupported(ofCurl, type, "; with curl, use --json to send JSON")),
];

/** Request bodies, and where their fields may be. */
export const bodyCases: readonly Case[] = [...fields, ...collisions, ...presence, ...contentTypes];
