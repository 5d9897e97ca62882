import { describeRequest, corpusGroups as groups, expectResponse, toRequest } from "./corpus/corpus.ts";
import { describe, test } from "vitest";
import { createFetchGateway } from "../../src/fetch/entry.ts";
// oxfmt-ignore
import { canFetchSend, exchangeFetch, heldRows, kitchenSinkOptions, openHttp1, openHttp2, rowsFor, shared,
  startKitchenSink } from "@protoport/testing";

/** The ways that `npm test` combines, because it sends every request over HTTP/2. */
const repeatedWays = ["HTTP/1.1", "Fetch"];
const { fetch } = createFetchGateway(kitchenSinkOptions);
const gateway = shared(() => startKitchenSink());
const http2 = shared(() => openHttp2(gateway.address));

/** Rules that a handler does not follow, because it compares literals as sent. */
const decodedLiterals: readonly string[] = [
  "RFC 3986 §6.2.2.2: escapes in template literals are decoded",
  "a verb is the text after the last colon, decoded",
  "an escaped literal takes precedence over *",
];

describe.each(groups)("the corpus $name", ({ name, cases }) => {
  const named = heldRows(
    cases.map((row) => ({ ...row, name: row.rule })),
    decodedLiterals,
  ).map((row) => ({ ...row, requestLine: describeRequest(row) }));
  // The cases in "values" differ only within a message, so one HTTP version suffices for them.
  const portable = name === "values" ? [] : named.filter((row) => row.only === undefined);

  // One connection per group, because the server closes connections that are idle for some seconds.
  const http1 = shared(() => openHttp1(gateway.address));

  test.each(rowsFor("HTTP/1.1", repeatedWays, portable))("$rule: $requestLine over HTTP/1.1", async (row) => {
    const request = toRequest(row);
    http1.request(request);
    expectResponse(await http1.readResponse(request.httpMethod), row.want);
  });

  const fetchable = rowsFor("Fetch", repeatedWays, portable).filter((row) => canFetchSend(toRequest(row)));
  test.each(fetchable)("$rule: $requestLine over Fetch", async (row) => {
    expectResponse(await exchangeFetch(fetch, toRequest(row)), row.want);
  });

  test.each(named)("$rule: $requestLine over HTTP/2", async (row) => {
    expectResponse(await http2.exchange(toRequest(row)), row.want);
  });
});
