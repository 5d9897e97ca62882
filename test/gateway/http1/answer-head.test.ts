import { STATUS_CODES } from "node:http";
import { expect, test } from "vitest";
import { answerHead } from "../../../src/gateway/http1/answer-head.ts";

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
