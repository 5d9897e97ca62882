import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ConnectRouter } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
// oxfmt-ignore
import { type Address, createTestGateway, exchangeHttp1, type Field, type HttpResponse, listenForTests, shared,
  startKitchenSink } from "@protoport/testing";
import { OrderService } from "../../../../testing/src/gen/orders/v1/orders_pb.ts";

// protoport/docs/how-to/migration.md compares the gateway with its peers in tables. This test sends the requests that the
// first table lists to the gateway.

const root = join(import.meta.dirname, "../../../../..");
const page = readFileSync(join(root, "protoport/docs/how-to/migration.md"), "utf8");
const [, section = ""] = page.split("\n## Compared with other gateways\n");
type TableRow = { readonly about: string; readonly own: string };
const parts = section.split(/\n\n/).filter((part) => part.startsWith("|"));
const tables = parts.map((part) => part.trim().split("\n").slice(2).map(toRow));

function toRow(line: string): TableRow {
  const cells = line.split(/(?<!\\)\|/).slice(1, -1);
  const [about = "", own = ""] = cells.map((cell) => cell.trim());
  return { about, own };
}

function ownCell(about: string): string {
  const row = tables.flat().find((each) => each.about === about);
  if (row === undefined) throw new Error(`the guide has no row about ${about}`);
  return row.own;
}

/** Returns the `f_string` that an echoing handler got, as the page writes it. */
function echoed({ body }: HttpResponse): string {
  const record: unknown = JSON.parse(body.toString());
  return /"fString":"([^"]*)"/.exec(JSON.stringify(record))?.[1] ?? "nothing";
}

const quoted = (response: HttpResponse): string => `\`${echoed(response)}\``;
const status = ({ httpStatus }: HttpResponse): string => String(httpStatus);

/** Requests to `DELETE /orders/{id}`. The cell shows the status, and the id that the handler got. */
const deletions = ["010", "null", "7;x=1", "7/"].map((path) => ({
  about: `\`/orders/${path}\``,
  request: `DELETE /orders/${path}`,
}));

interface Sent {
  readonly about: string;
  readonly request: string;
  readonly body?: string;
  readonly cell: (response: HttpResponse) => string;
}

// oxfmt-ignore
const otherRules: readonly Sent[] = [
  { about: "`/files/1%2F2` to `/files/{path=**}`", request: "GET /v1/files/1%2F2", cell: quoted },
  { about: "HEAD where GET is", request: "HEAD /v1/query",
    cell: ({ httpStatus, header }) => (httpStatus === 200 && header.length > 1 ? "as GET" : String(httpStatus)) },
  { about: "a string that is not UTF-8, in a query", request: "GET /v1/query?fString=%ff", cell: status },
  { about: "an unknown enum name in a body", request: "POST /v1/sinks", body: '{"fEnum":"X"}', cell: status },
  { about: "text after the JSON of a body", request: "POST /v1/sinks", body: "{} x", cell: status },
];

test("each request in the table is tested", () => {
  const tested = [...deletions, ...otherRules].map(({ about }) => about);
  expect(tested.toSorted()).toEqual(tables[0]?.map(({ about }) => about).toSorted());
});

const jsonType: Field = ["content-type", "application/json"];

async function send(address: Address, { request, body }: Pick<Sent, "request" | "body">): Promise<HttpResponse> {
  const [httpMethod = "", path = ""] = request.split(" ");
  const head = { httpMethod, path, header: body === undefined ? [] : [jsonType] };
  return await exchangeHttp1(address, body === undefined ? head : { ...head, body: Buffer.from(body) });
}

describe("the gateway's response to a DELETE /orders/{id} request", () => {
  let received: bigint | undefined;
  const routes = (router: ConnectRouter): void => {
    router.service(OrderService, {
      deleteOrder: ({ id }) => {
        received = id;
        return {};
      },
    });
  };

  const gateway = shared(() => listenForTests(createTestGateway({ routes })));

  test.each(deletions)('for "$about" is as documented', async ({ about, request }) => {
    received = undefined;
    const { httpStatus } = await send(gateway.address, { request });
    expect(received === undefined ? `${httpStatus}` : `${httpStatus} → ${String(received)}`).toBe(ownCell(about));
  });
});

describe("the gateway's response with other HTTP rules", () => {
  const gateway = shared(() => startKitchenSink());

  test.each(otherRules)('for "$about" is as documented', async ({ about, cell, ...request }) => {
    expect(cell(await send(gateway.address, request))).toBe(ownCell(about));
  });
});
