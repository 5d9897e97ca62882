import { STATUS_CODES } from "node:http";
import { expect, test } from "vitest";
import { prepareHeaderFields } from "../../../src/gateway/carriers/index.ts";
import { answerHead, closeLine } from "../../../src/gateway/http1/answer-head.ts";

// RFC 9110 has newer names for two of node's, and 499 is nginx's.
const renamed: Readonly<Record<number, string>> = {
  413: "Content Too Large",
  422: "Unprocessable Content",
  499: "Client Closed Request",
};

// Statuses of proxies, of WebDAV and of other extensions: they have no phrase, which is allowed (RFC 9112 §4).
const unnamed = new Set([207, 208, 226, 305, 407, 418, 423, 424, 425, 451, 506, 507, 508, 509, 510, 511]);

test("every status of a server in RFC 9110 has its reason phrase, and all others an empty one", () => {
  for (let httpStatus = 200; httpStatus < 600; httpStatus++) {
    const phrase = unnamed.has(httpStatus) ? "" : (renamed[httpStatus] ?? STATUS_CODES[httpStatus] ?? "");
    expect(answerHead(httpStatus, [], "none", "")).toBe(`HTTP/1.1 ${httpStatus} ${phrase}\r\n\r\n`);
  }
});

const date = prepareHeaderFields("date", "Mon, 23 Nov 2026 12:00:00 GMT");
const nextDate = prepareHeaderFields("date", "Mon, 23 Nov 2026 12:00:01 GMT");

test.each<{ name: string; given: Parameters<typeof answerHead>; want: string }>([
  { name: "another status", given: [200, [date], 0, ""], want: "200 OK\r\ndate: 00\r\ncontent-length: 0" },
  { name: "the next second", given: [202, [nextDate], 0, ""], want: "202 Accepted\r\ndate: 01\r\ncontent-length: 0" },
  { name: "another length", given: [202, [date], 2, ""], want: "202 Accepted\r\ndate: 00\r\ncontent-length: 2" },
  { name: "no length", given: [202, [date], "none", ""], want: "202 Accepted\r\ndate: 00" },
  {
    name: "the end of its connection",
    given: [202, [date], 0, closeLine],
    want: "202 Accepted\r\ndate: 00\r\ncontent-length: 0\r\nconnection: close",
  },
  { name: "no fields", given: [202, [], 0, ""], want: "202 Accepted\r\ncontent-length: 0" },
  {
    name: "an empty list before",
    given: [202, [[], date], 0, ""],
    want: "202 Accepted\r\ndate: 00\r\ncontent-length: 0",
  },
  {
    name: "an empty list in the place of another",
    given: [202, [[]], 0, ""],
    want: "202 Accepted\r\ncontent-length: 0",
  },
  {
    name: "a field more",
    given: [202, [date, ["x-a", "b"]], 0, ""],
    want: "202 Accepted\r\ndate: 00\r\nx-a: b\r\ncontent-length: 0",
  },
])("a head differs from the one before by $name", ({ given, want }) => {
  answerHead(202, [date], 0, "");
  expect(
    answerHead(...given)
      .replace("Mon, 23 Nov 2026 12:00:", "")
      .replace(" GMT", ""),
  ).toBe(`HTTP/1.1 ${want}\r\n\r\n`);
});

test("a list that has changed since the answer before is read again", () => {
  const fields = ["x-a", "b"];
  const empty: string[] = [];
  answerHead(204, [fields, empty], "none", "");
  fields[1] = "c";
  expect(answerHead(204, [fields, empty], "none", "")).toContain("x-a: c\r\n");
  answerHead(204, [date, empty], "none", "");
  empty.push("x-a", "d");
  expect(answerHead(204, [date, empty], "none", "")).toContain("x-a: d\r\n");
});
