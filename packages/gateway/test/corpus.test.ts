import { askedBy, corpusGroups as groups, expectAnswer, toRequest } from "./corpus/asking.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createFetchGateway } from "../src/fetch/entry.ts";
import { exchangeFetch, isSayable } from "../../testing/src/carriers/fetch.ts";
import { type Http1Connection, openHttp1 } from "../../testing/src/carriers/http1-connection.ts";
import { type Http2Connection, openHttp2 } from "../../testing/src/carriers/http2-connection.ts";
import { kitchenSinkOptions, startKitchenSink, type TestGateway } from "../../testing/src/gateway/kitchen-sink.ts";

const { fetch } = createFetchGateway(kitchenSinkOptions);
let gateway: TestGateway;
let http2: Http2Connection;

beforeAll(async () => {
  gateway = await startKitchenSink();
  http2 = await openHttp2(gateway.address);
});

afterAll(async () => {
  http2[Symbol.dispose]();
  await gateway[Symbol.asyncDispose]();
});

test("the corpus has at least 300 requests, each of them once", () => {
  const requests = groups.flatMap(({ rows }) => rows).map((row) => JSON.stringify(toRequest(row)));
  expect(requests.length).toBeGreaterThanOrEqual(300);
  const twice = requests.filter((request, at) => requests.indexOf(request) !== at);
  expect(twice).toEqual([]);
});

describe.each(groups)("in the corpus of $name,", ({ name, rows: group }) => {
  const rows = group.map((row) => ({ ...row, asked: askedBy(row) }));
  // Values differ within a message, which no carrier sees: once is enough.
  const carried = name === "values" ? [] : rows.filter((row) => row.only === undefined);
  let http1: Http1Connection;

  // One connection for each group: the server closes one that is idle for some seconds.
  beforeAll(async () => {
    http1 = await openHttp1(gateway.address);
  });

  afterAll(() => http1[Symbol.dispose]());

  test.each(carried)("$rule: $asked over HTTP/1.1", async (row) => {
    const request = toRequest(row);
    http1.request(request);
    expectAnswer(await http1.readAnswer(request.httpMethod), row.want);
  });

  test.each(carried.filter((row) => isSayable(toRequest(row))))("$rule: $asked over Fetch", async (row) => {
    expectAnswer(await exchangeFetch(fetch, toRequest(row)), row.want);
  });

  test.each(rows)("$rule: $asked over HTTP/2", async (row) => {
    expectAnswer(await http2.exchange(toRequest(row)), row.want);
  });
});
