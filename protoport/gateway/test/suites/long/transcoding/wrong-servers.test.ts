import { expect, test } from "vitest";
import { bodyOf } from "../../../../../conformance/runner/response.ts";
import { run, type HttpResponse, type CaseRequest, type Exchange } from "../../../../../conformance/runner/index.ts";
import { createGateway } from "../../../../src/index.ts";
import { allCases } from "../../../../../testing/src/transcoding/all-cases.ts";
import { echoOptions } from "../../../../../testing/src/transcoding/echo-backend.ts";
import { overFetch } from "../../../../../testing/src/transcoding/over-fetch.ts";

type ChangeRequest = (request: CaseRequest) => CaseRequest;
type ChangeResponse = (response: HttpResponse) => HttpResponse;
const cases = new Map(allCases.map((each) => [each.id, each]));
const right = overFetch(createGateway(echoOptions).fetch);

function to(target: (target: string) => string): ChangeRequest {
  return (request) => ({ ...request, target: target(request.target) });
}

function withBody(body: (text: string) => string): ChangeRequest {
  return (request) => ({ ...request, json: body(bodyOf(request)?.toString() ?? "") });
}

function withResponseBody(text: (text: string) => string): ChangeResponse {
  return (response) => ({ ...response, body: Buffer.from(text(response.body.toString())) });
}

const withEchoedMessage = (change: (message: string) => string): ChangeResponse =>
  withResponseBody((text) => {
    const echo: { rpc: string; message: string } = JSON.parse(text);
    return JSON.stringify({ ...echo, message: change(echo.message) });
  });

/** Responds as if the backend had been called. */
function callingBackend(message: string): ChangeResponse {
  return (response) => ({ ...response, status: 200, body: Buffer.from(JSON.stringify({ rpc: "Any", message })) });
}

const withStatus =
  (status: number): ChangeResponse =>
  (response) => ({ ...response, status });

type Wrong<Change> = readonly (readonly [name: string, detectedBy: string, change: Change])[];

const wrongRequests: Wrong<ChangeRequest> = [
  ["swapped variables", "path.pair", to((t) => t.replace("a/b", "b/a"))],
  ["escapes that are decoded twice", "path.string.percent-escape", to((t) => t.replace("%25", "%"))],
  ["escapes that are not decoded", "path.string.space", to((t) => t.replace("%", "%25"))],
  ["an escaped slash that separates segments", "path.pair.escaped-slashes", to((t) => t.replaceAll("%2F", "/"))],
  ["a path without empty segments", "path.no.empty-segment", to((t) => t.replace("//", "/"))],
  ["a path in lower case", "path.no.capital", to((t) => t.toLowerCase())],
  ["a plus in the path that is decoded as a space", "path.string.raw-plus", to((t) => t.replace("+", "%20"))],
  ["invalid escapes that are dropped", "path.bad-escape", to((t) => t.replace("%zz", "zz"))],
  ["a verb that is split off any path", "verb.other", to((t) => t.replace(":b", ""))],
  ["a verb after an escaped colon", "verb.escaped-colon", to((t) => t.replace("%3A", ":"))],
  ["a query that overrides the path", "query.path.proto-name", to((t) => t.replace(/7\?f_int64=8/, "8"))],
  ["only the last value of a repeated field", "query.repeated.strings", to((t) => t.replace(/r_string=a&/, ""))],
  ["an empty value treated as missing", "query.string.empty", to((t) => t.replace("?opt_string=", ""))],
  ["text after the JSON that is ignored", "body.syntax.trailing-text", withBody((b) => b.replace(" x", ""))],
];

// oxfmt-ignore
const wrongResponses: Wrong<ChangeResponse> = [
  ["an int64 converted to a double", "path.int64.above-2-53", withEchoedMessage((m) => m.replace("993", "992"))],
  ["an escaped slash that is decoded in several segments", "path.segments.slash",
    withEchoedMessage((m) => m.replace("%2F", "/"))],
  ["query parameters accepted although the whole message is the body", "body.star.query.field",
    callingBackend('{"fInt64":"7","fString":"b"}')],
  ["query parameters with JSON names only", "query.name.proto-name-beside-json-name", withEchoedMessage(() => "{}")],
  ["a body that overrides the path", "body.star.path.json-name", callingBackend('{"fInt64":"9"}')],
  ["a null in the body that clears a path variable", "body.star.path.null", callingBackend("{}")],
  ["a body that is read although the rule has none", "body.none.delete.field", callingBackend('{"fInt64":"9"}')],
  ["invalid UTF-8 that is replaced", "body.utf-8.bad", callingBackend('{"fString":"\ufffd"}')],
  ["an int32 that wraps", "json.int32.no.above-max", callingBackend('{"fInt32":-2147483648}')],
  ["an unknown enum read as zero", "path.enum.unknown-name", callingBackend("{}")],
  ["an invalid value reported as an internal error", "path.int64.letters", withStatus(500)],
  ["a field that loses its presence", "body.presence.int64", withEchoedMessage(() => "{}")],
  ["unpadded base64 that is refused", "body.bytes.unpadded", withStatus(400)],
  ["enum numbers that are refused", "body.enum.number", withStatus(400)],
  ["an int64 in a response as a number", "response.int64.above-2-53",
    withResponseBody((t) => t.replace(/"(\d+)"/, "$1"))],
  ["the complete message instead of its field", "response.field.string", withResponseBody((t) => `{"fString":${t}}`)],
  ["an error with status 200", "response.code.not-found", withStatus(200)],
  ["a 405 without Allow", "method.allow", (response) => ({ ...response, header: [] })],
  ["a stream without its last message", "stream.count.3",
    withResponseBody((t) => t.split("\n").slice(0, 2).join("\n"))],
  ["a stream in the wrong order", "stream.count.2",
    withResponseBody((t) => t.trim().split("\n").toReversed().join("\n"))],
  ["a stream without its error", "stream.error.behind-one", withResponseBody((t) => t.split("\n")[0] ?? "")],
  ["line breaks between chunks of bytes", "file.pieces.two", withResponseBody((t) => t.split("").join("\n"))],
  ["bytes in JSON", "file.get.text", withResponseBody((t) => JSON.stringify(t))],
  ["a wrong content type for bytes", "file.get.image",
    (response) => ({ ...response, header: [["content-type", "text/plain"]] })],
  ["a body in the response to HEAD", "method.head", (response) => ({ ...response, body: Buffer.from("{}") })],
];

const wrongServers = [
  ...wrongRequests.map(([name, detectedBy, request]) => ({ name, detectedBy, request, response: undefined })),
  ...wrongResponses.map(([name, detectedBy, response]) => ({ name, detectedBy, request: undefined, response })),
];

test.each(wrongServers)("the case $detectedBy detects $name on a server", async ({ detectedBy, request, response }) => {
  const wrong: Exchange = async (original, timeoutMs) => {
    const received = await right(request?.(original) ?? original, timeoutMs);
    return response?.(received) ?? received;
  };
  const each = cases.get(detectedBy);
  if (each === undefined) throw new Error(`there is no case ${detectedBy}`);
  const outcomes: string[] = [];
  for (const exchange of [right, wrong]) {
    const options = { exchange, timeoutMs: 1000, without: [], knownFailing: [] };
    for await (const { outcome } of run([each], options)) outcomes.push(outcome);
  }
  expect(outcomes[0]).not.toBe("fail");
  expect(outcomes[1]).toBe("fail");
});
