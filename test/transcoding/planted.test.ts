import { expect, test } from "vitest";
import { bodyOf } from "../../conformance/runner/answer.ts";
import type { Answer, CaseRequest, Exchange } from "../../conformance/runner/index.ts";
import { run } from "../../conformance/runner/index.ts";
import { createGateway } from "../../src/gateway/index.ts";
import { allCases } from "./all-cases.ts";
import { echoOptions } from "./echo-backend.ts";
import { overFetch } from "./over-fetch.ts";

/** A wrong behaviour of a server, and the case that notices it. */
interface Plant {
  readonly name: string;
  readonly noticedBy: string;
  /** What the server makes of the request before it reads it. */
  readonly request?: ChangeRequest;
  /** What it makes of the answer. */
  readonly answer?: ChangeAnswer;
}

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

const plants: readonly Plant[] = [
  {
    name: "an int64 that went through a double",
    noticedBy: "path.int64.above-2-53",
    answer: seeing((m) => m.replace("993", "992")),
  },
  { name: "the other one of two variables", noticedBy: "path.pair", request: to((t) => t.replace("a/b", "b/a")) },
  {
    name: "escapes that are decoded twice",
    noticedBy: "path.string.percent-escape",
    request: to((t) => t.replace("%25", "%")),
  },
  { name: "escapes that are not decoded", noticedBy: "path.string.space", request: to((t) => t.replace("%", "%25")) },
  {
    name: "an escaped slash that separates",
    noticedBy: "path.pair.escaped-slashes",
    request: to((t) => t.replaceAll("%2F", "/")),
  },
  {
    name: "an escaped slash that is decoded in several segments",
    noticedBy: "path.segments.slash",
    answer: seeing((m) => m.replace("%2F", "/")),
  },
  {
    name: "a path that a client has cleaned",
    noticedBy: "path.no.empty-segment",
    request: to((t) => t.replace("//", "/")),
  },
  { name: "a path in small letters", noticedBy: "path.no.capital", request: to((t) => t.toLowerCase()) },
  {
    name: "a plus in a path that is a space",
    noticedBy: "path.string.raw-plus",
    request: to((t) => t.replace("+", "%20")),
  },
  { name: "bad escapes that are dropped", noticedBy: "path.bad-escape", request: to((t) => t.replace("%zz", "zz")) },
  { name: "a verb that is always split off", noticedBy: "verb.other", request: to((t) => t.replace(":b", "")) },
  {
    name: "a verb that is found behind an escaped colon",
    noticedBy: "verb.escaped-colon",
    request: to((t) => t.replace("%3A", ":")),
  },
  {
    name: "a query that wins over the path",
    noticedBy: "query.path.proto-name",
    request: to((t) => t.replace(/7\?f_int64=8/, "8")),
  },
  {
    name: "a query that counts beside a body",
    noticedBy: "body.star.query.field",
    answer: askedAnyway('{"fInt64":"7","fString":"b"}'),
  },
  {
    name: "only the last value of a repeated field",
    noticedBy: "query.repeated.strings",
    request: to((t) => t.replace(/r_string=a&/, "")),
  },
  {
    name: "an empty value that is none",
    noticedBy: "query.string.empty",
    request: to((t) => t.replace("?opt_string=", "")),
  },
  {
    name: "names of queries that must be JSON names",
    noticedBy: "query.name.proto-name-beside-json-name",
    answer: seeing(() => "{}"),
  },
  {
    name: "a body that wins over the path",
    noticedBy: "body.star.path.json-name",
    answer: askedAnyway('{"fInt64":"9"}'),
  },
  { name: "null that clears the path", noticedBy: "body.star.path.null", answer: askedAnyway("{}") },
  {
    name: "a body that is read where there is none",
    noticedBy: "body.none.delete.field",
    answer: askedAnyway('{"fInt64":"9"}'),
  },
  {
    name: "text behind the JSON that is not seen",
    noticedBy: "body.syntax.trailing-text",
    request: saying((b) => b.replace(" x", "")),
  },
  {
    name: "bytes that are no UTF-8 and replaced",
    noticedBy: "body.utf-8.bad",
    answer: askedAnyway('{"fString":"\ufffd"}'),
  },
  { name: "an int32 that wraps", noticedBy: "json.int32.no.above-max", answer: askedAnyway('{"fInt32":-2147483648}') },
  { name: "an enum that is silently zero", noticedBy: "path.enum.unknown-name", answer: askedAnyway("{}") },
  { name: "a bad value that is a fault of the server", noticedBy: "path.int64.letters", answer: withStatus(500) },
  { name: "presence that is lost", noticedBy: "body.presence.int64", answer: seeing(() => "{}") },
  { name: "bytes that must be padded", noticedBy: "body.bytes.unpadded", answer: withStatus(400) },
  { name: "numbers of enums that are not read", noticedBy: "body.enum.number", answer: withStatus(400) },
  {
    name: "an int64 in an answer as a number",
    noticedBy: "answer.int64.above-2-53",
    answer: answering((t) => t.replace(/"(\d+)"/, "$1")),
  },
  {
    name: "the whole message instead of its field",
    noticedBy: "answer.field.string",
    answer: answering((t) => `{"fString":${t}}`),
  },
  { name: "an error that is a 200", noticedBy: "answer.code.not-found", answer: withStatus(200) },
  { name: "a 405 without Allow", noticedBy: "method.allow", answer: (answer) => ({ ...answer, header: [] }) },
  {
    name: "a stream without its last message",
    noticedBy: "stream.count.3",
    answer: answering((t) => t.split("\n").slice(0, 2).join("\n")),
  },
  {
    name: "a stream in the wrong order",
    noticedBy: "stream.count.2",
    answer: answering((t) => t.trim().split("\n").toReversed().join("\n")),
  },
  {
    name: "an error in a stream that is not told",
    noticedBy: "stream.error.behind-one",
    answer: answering((t) => t.split("\n")[0] ?? ""),
  },
  {
    name: "line ends between pieces of bytes",
    noticedBy: "file.pieces.two",
    answer: answering((t) => t.split("").join("\n")),
  },
  { name: "bytes in JSON", noticedBy: "file.get.text", answer: answering((t) => JSON.stringify(t)) },
  {
    name: "another content type of bytes",
    noticedBy: "file.get.image",
    answer: (answer) => ({ ...answer, header: [["content-type", "text/plain"]] }),
  },
  { name: "a body to HEAD", noticedBy: "method.head", answer: (answer) => ({ ...answer, body: Buffer.from("{}") }) },
];

test.each(plants)("$name is noticed by $noticedBy", async ({ noticedBy, request, answer }) => {
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

test("at least 30 wrong behaviours are planted, each of its own", () => {
  expect(new Set(plants.map(({ noticedBy }) => noticedBy)).size).toBeGreaterThanOrEqual(30);
});
