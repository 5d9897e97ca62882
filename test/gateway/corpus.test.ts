import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createFetchGateway } from "../../src/gateway/fetch/entry.ts";
import type { Field, HttpAnswer, HttpRequest } from "../support/carriers/exchange.ts";
import { exchangeFetch, isSayable } from "../support/carriers/fetch.ts";
import { type Http1Connection, openHttp1 } from "../support/carriers/http1-connection.ts";
import { type Http2Connection, openHttp2 } from "../support/carriers/http2-connection.ts";
import { kitchenSinkOptions, startKitchenSink, type TestGateway } from "../support/gateway/kitchen-sink.ts";
import { answerRows } from "./corpus/answers.ts";
import { bodyRows } from "./corpus/bodies.ts";
import { legacyRows } from "./corpus/legacies.ts";
import { maskRows } from "./corpus/masks.ts";
import { pathRows } from "./corpus/paths.ts";
import { queryRows } from "./corpus/queries.ts";
import type { Row, Want } from "./corpus/row.ts";
import { valueRows } from "./corpus/values.ts";

const groups: readonly { readonly name: string; readonly rows: readonly Row[] }[] = [
  { name: "paths", rows: pathRows },
  { name: "values", rows: valueRows },
  { name: "queries", rows: queryRows },
  { name: "bodies", rows: bodyRows },
  { name: "masks", rows: maskRows },
  { name: "legacies", rows: legacyRows },
  { name: "answers", rows: answerRows },
];

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

function toRequest(row: Row): HttpRequest {
  const [httpMethod = "", path = ""] = row.request.split(" ");
  const contentType = row.contentType === undefined ? row.body !== undefined && "application/json" : row.contentType;
  const header: Field[] = [...(row.header ?? [])];
  if (typeof contentType === "string") header.push(["content-type", contentType]);
  const body = typeof row.body === "string" ? new TextEncoder().encode(row.body) : row.body;
  return body === undefined ? { httpMethod, path, header } : { httpMethod, path, header, body };
}

function expectAnswer(answer: HttpAnswer, want: Want): void {
  const header = Object.fromEntries(answer.header);
  const text = answer.body.toString("utf8");
  if ("rpc" in want) {
    expect(`${answer.httpStatus} ${text}`).toMatch(/^200 /);
    expect(JSON.parse(text)).toEqual({ rpc: want.rpc, sink: want.sink });
    return;
  }
  expect(answer.httpStatus, text).toBe(want.httpStatus);
  expect(header).toMatchObject(want.header ?? {});
  if ("json" in want) {
    expect(text === "" ? undefined : JSON.parse(text)).toEqual(want.json);
    return;
  }
  expect(header["content-type"]).toBe("application/json");
  const record: unknown = JSON.parse(text);
  expect(record).toMatchObject({ code: want.code, message: expect.stringContaining(want.message) });
}

/** A request in one line, for the name of its row. */
function askedBy({ request, body, contentType }: Row): string {
  if (body === undefined) return request;
  const type = contentType === undefined ? "" : ` as ${contentType ?? "no type"}`;
  return `${request} with ${typeof body === "string" ? body.replaceAll(/[\t\r\n]/g, " ") : "bytes that are no text"}${type}`;
}

test("the corpus has at least 500 requests, each of them once", () => {
  const requests = groups.flatMap(({ rows }) => rows).map((row) => JSON.stringify(toRequest(row)));
  expect(requests.length).toBeGreaterThanOrEqual(500);
  const twice = requests.filter((request, at) => requests.indexOf(request) !== at);
  expect(twice).toEqual([]);
});

describe.each(groups)("in the corpus of $name,", ({ rows: group }) => {
  const rows = group.map((row) => ({ ...row, asked: askedBy(row) }));
  let http1: Http1Connection;

  // One connection for each group: the server closes one that is idle for some seconds.
  beforeAll(async () => {
    http1 = await openHttp1(gateway.address);
  });

  afterAll(() => http1[Symbol.dispose]());

  test.each(rows.filter((row) => row.only === undefined))("$rule: $asked over HTTP/1.1", async (row) => {
    const request = toRequest(row);
    http1.request(request);
    expectAnswer(await http1.readAnswer(request.httpMethod), row.want);
  });

  const sayable = rows.filter((row) => row.only === undefined && isSayable(toRequest(row)));
  test.each(sayable)("$rule: $asked over Fetch", async (row) => {
    expectAnswer(await exchangeFetch(fetch, toRequest(row)), row.want);
  });

  test.each(rows)("$rule: $asked over HTTP/2", async (row) => {
    expectAnswer(await http2.exchange(toRequest(row)), row.want);
  });
});
