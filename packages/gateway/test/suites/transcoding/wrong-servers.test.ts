import { expect, test } from "vitest";
import { bodyOf } from "../../../../conformance/runner/answer.ts";
import type { Answer, CaseRequest, Exchange } from "../../../../conformance/runner/index.ts";
import { run } from "../../../../conformance/runner/index.ts";
import { createGateway } from "../../../src/index.ts";
import { allCases } from "../../../../testing/src/transcoding/all-cases.ts";
import { echoOptions } from "../../../../testing/src/transcoding/echo-backend.ts";
import { overFetch } from "./over-fetch.ts";

type ChangeRequest = (request: CaseRequest) => CaseRequest;
type ChangeAnswer = (answer: Answer) => Answer;

const cases = new Map(allCases.map((each) => [each.id, each]));
const right = overFetch(createGateway(echoOptions).fetch);

function to(target: (target: string) => string): ChangeRequest {
  return (request) => ({ ...request, target: target(request.target) });
}

function saying(body: (text: string) => string): ChangeRequest {
  return (request) => ({ ...request, json: body(bodyOf(request)?.toString() ?? "") });
}

function answering(text: (text: string) => string): ChangeAnswer {
  return (answer) => ({ ...answer, body: Buffer.from(text(answer.body.toString())) });
}

/** The echo of another message. */
function seeing(change: (message: string) => string): ChangeAnswer {
  return answering((text) => {
    const echo: { rpc: string; message: string } = JSON.parse(text);
    return JSON.stringify({ ...echo, message: change(echo.message) });
  });
}

/** As if the backend was asked where it must not be. */
function askedAnyway(message: string): ChangeAnswer {
  return (answer) => ({ ...answer, status: 200, body: Buffer.from(JSON.stringify({ rpc: "Any", message })) });
}

function withStatus(status: number): ChangeAnswer {
  return (answer) => ({ ...answer, status });
}

/** A wrong behaviour of a server, and the case that notices it. */
type Wrong<Change> = readonly (readonly [name: string, noticedBy: string, change: Change])[];

/** What the server makes of a request before it reads it. */
const wrongRequests: Wrong<ChangeRequest> = [
  ["the other one of two variables", "path.pair", to((t) => t.replace("a/b", "b/a"))],
  ["escapes that are decoded twice", "path.string.percent-escape", to((t) => t.replace("%25", "%"))],
  ["escapes that are not decoded", "path.string.space", to((t) => t.replace("%", "%25"))],
  ["an escaped slash that separates", "path.pair.escaped-slashes", to((t) => t.replaceAll("%2F", "/"))],
  ["a path that a client has cleaned", "path.no.empty-segment", to((t) => t.replace("//", "/"))],
  ["a path in small letters", "path.no.capital", to((t) => t.toLowerCase())],
  ["a plus in a path that is a space", "path.string.raw-plus", to((t) => t.replace("+", "%20"))],
  ["bad escapes that are dropped", "path.bad-escape", to((t) => t.replace("%zz", "zz"))],
  ["a verb that is always split off", "verb.other", to((t) => t.replace(":b", ""))],
  ["a verb that is found behind an escaped colon", "verb.escaped-colon", to((t) => t.replace("%3A", ":"))],
  ["a query that wins over the path", "query.path.proto-name", to((t) => t.replace(/7\?f_int64=8/, "8"))],
  ["only the last value of a repeated field", "query.repeated.strings", to((t) => t.replace(/r_string=a&/, ""))],
  ["an empty value that is none", "query.string.empty", to((t) => t.replace("?opt_string=", ""))],
  ["text behind the JSON that is not seen", "body.syntax.trailing-text", saying((b) => b.replace(" x", ""))],
];

/** What it makes of an answer. */
const wrongAnswers: Wrong<ChangeAnswer> = [
  ["an int64 that went through a double", "path.int64.above-2-53", seeing((m) => m.replace("993", "992"))],
  ["an escaped slash that is decoded in several segments", "path.segments.slash", seeing((m) => m.replace("%2F", "/"))],
  ["a query that counts beside a body", "body.star.query.field", askedAnyway('{"fInt64":"7","fString":"b"}')],
  ["names of queries that must be JSON names", "query.name.proto-name-beside-json-name", seeing(() => "{}")],
  ["a body that wins over the path", "body.star.path.json-name", askedAnyway('{"fInt64":"9"}')],
  ["null that clears the path", "body.star.path.null", askedAnyway("{}")],
  ["a body that is read where there is none", "body.none.delete.field", askedAnyway('{"fInt64":"9"}')],
  ["bytes that are no UTF-8 and replaced", "body.utf-8.bad", askedAnyway('{"fString":"\ufffd"}')],
  ["an int32 that wraps", "json.int32.no.above-max", askedAnyway('{"fInt32":-2147483648}')],
  ["an enum that is silently zero", "path.enum.unknown-name", askedAnyway("{}")],
  ["a bad value that is a fault of the server", "path.int64.letters", withStatus(500)],
  ["presence that is lost", "body.presence.int64", seeing(() => "{}")],
  ["bytes that must be padded", "body.bytes.unpadded", withStatus(400)],
  ["numbers of enums that are not read", "body.enum.number", withStatus(400)],
  ["an int64 in an answer as a number", "answer.int64.above-2-53", answering((t) => t.replace(/"(\d+)"/, "$1"))],
  ["the whole message instead of its field", "answer.field.string", answering((t) => `{"fString":${t}}`)],
  ["an error that is a 200", "answer.code.not-found", withStatus(200)],
  ["a 405 without Allow", "method.allow", (answer) => ({ ...answer, header: [] })],
  ["a stream without its last message", "stream.count.3", answering((t) => t.split("\n").slice(0, 2).join("\n"))],
  ["a stream in the wrong order", "stream.count.2", answering((t) => t.trim().split("\n").toReversed().join("\n"))],
  ["an error in a stream that is not told", "stream.error.behind-one", answering((t) => t.split("\n")[0] ?? "")],
  ["line ends between pieces of bytes", "file.pieces.two", answering((t) => t.split("").join("\n"))],
  ["bytes in JSON", "file.get.text", answering((t) => JSON.stringify(t))],
  [
    "another content type of bytes",
    "file.get.image",
    (answer) => ({ ...answer, header: [["content-type", "text/plain"]] }),
  ],
  ["a body to HEAD", "method.head", (answer) => ({ ...answer, body: Buffer.from("{}") })],
];

const wrongServers = [
  ...wrongRequests.map(([name, noticedBy, request]) => ({ name, noticedBy, request, answer: undefined })),
  ...wrongAnswers.map(([name, noticedBy, answer]) => ({ name, noticedBy, request: undefined, answer })),
];

test.each(wrongServers)("$name is noticed by $noticedBy", async ({ noticedBy, request, answer }) => {
  const wrong: Exchange = async (asked, timeoutMs) => {
    const got = await right(request?.(asked) ?? asked, timeoutMs);
    return answer?.(got) ?? got;
  };
  const each = cases.get(noticedBy);
  if (each === undefined) throw new Error(`there is no case ${noticedBy}`);
  const outcomes: string[] = [];
  for (const exchange of [right, wrong]) {
    const options = { exchange, timeoutMs: 1000, without: [], knownFailing: [] };
    for await (const { outcome } of run([each], options)) outcomes.push(outcome);
  }
  expect(outcomes[0]).not.toBe("fail");
  expect(outcomes[1]).toBe("fail");
});

test("there are at least 30 wrong servers, each noticed by a separate case", () => {
  expect(new Set(wrongServers.map(({ noticedBy }) => noticedBy)).size).toBeGreaterThanOrEqual(30);
});
