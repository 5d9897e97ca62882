import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ConnectRouter } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createGateway, type Gateway } from "../../src/gateway/index.ts";
import { PlantService } from "../../src/plantstore/gen/es/plantstore/v1/plant_service_pb.ts";
import type { Address, Field, HttpAnswer } from "../support/carriers/exchange.ts";
import { exchangeHttp1 } from "../support/carriers/http1-connection.ts";
import { startKitchenSink, type TestGateway } from "../support/gateway/kitchen-sink.ts";

// The tables of docs/gateway.md that compare the gateway with its peers: what they say of the gateway is run here.

const root = join(import.meta.dirname, "../..");
const guide = readFileSync(join(root, "docs/gateway.md"), "utf8");
const section = guide.slice(guide.indexOf("## Compared with its peers"));

/** One row: what it is about, the gateway's own cell, and those of the four peers. */
interface TableRow {
  readonly about: string;
  readonly own: string;
  readonly peers: readonly string[];
}

const tables = section
  .split(/\n\n/)
  .filter((part) => part.startsWith("|"))
  .map((part) => part.trim().split("\n").slice(2).map(toRow));

function toRow(line: string): TableRow {
  const [about = "", own = "", ...peers] = line
    .split(/(?<!\\)\|/)
    .slice(1, -1)
    .map((cell) => cell.trim());
  return { about, own, peers };
}

function ownCell(about: string): string {
  const row = tables.flat().find((each) => each.about === about);
  if (row === undefined) throw new Error(`the guide has no row about ${about}`);
  return row.own;
}

test("there are three tables", () => {
  expect(tables.map((rows) => rows.length > 5)).toEqual([true, true, true]);
});

test.each(tables.flat())("every peer's cell about $about says something", ({ peers }) => {
  expect(peers).toHaveLength(4);
  expect(peers.filter((cell) => cell === "" || /not checked|unknown$/.test(cell))).toEqual([]);
});

/** A request of the tables, by the words of its row. */
interface Sent {
  readonly about: string;
  readonly request: string;
  readonly body?: string;
  /** What the cell says of the answer; by default the status, and the id that the handler was given. */
  readonly cell?: (answer: HttpAnswer) => string;
}

const jsonType: Field = ["content-type", "application/json"];

async function send(address: Address, { request, body }: Pick<Sent, "request" | "body">): Promise<HttpAnswer> {
  const [httpMethod = "", path = ""] = request.split(" ");
  const head = { httpMethod, path, header: body === undefined ? [] : [jsonType] };
  return await exchangeHttp1(address, body === undefined ? head : { ...head, body: Buffer.from(body) });
}

describe("what the guide says of DELETE /plants/{id}", () => {
  let gateway: Gateway;
  let address: Address;
  let given: bigint | undefined;
  const routes = (router: ConnectRouter): void => {
    router.service(PlantService, {
      deletePlant: ({ id }) => {
        given = id;
        return {};
      },
    });
  };

  beforeAll(async () => {
    gateway = createGateway({ routes });
    address = await gateway.listen({ host: "127.0.0.1", port: 0 });
  });
  afterAll(() => gateway.close());

  const paths = ["/plants/010", "/plants/0x7", "/plants/+7", "/plants/%207", "/plants/null", "/plants/7;x=1"];
  const morePaths = ["/plants/7/", "//plants/7", "/%70lants/7", "/plants/7?id=8", "/plants/7?x=1"];
  const rows: readonly Sent[] = [
    ...[...paths, ...morePaths].map((path) => ({ about: `\`${path}\``, request: `DELETE ${path}` })),
    { about: "`/plants/%D9%A7` (an Arabic-Indic 7)", request: "DELETE /plants/%D9%A7" },
    { about: '`/plants/7` with the body `{"id":"9"}`', request: "DELETE /plants/7", body: '{"id":"9"}' },
    {
      about: "`/plants/%zz`",
      request: "DELETE /plants/%zz",
      cell: (answer) =>
        `${answer.httpStatus}, ${typeof JSON.parse(answer.body.toString()) === "object" ? "JSON" : "text"}`,
    },
    {
      about: "PUT to `/plants/7`",
      request: "PUT /plants/7",
      cell: (answer) =>
        `${answer.httpStatus}${answer.header.some(([name, value]) => name === "allow" && value === "DELETE") ? ", `Allow`" : ""}`,
    },
  ];

  test.each(rows)("$about", async ({ about, cell, ...request }) => {
    given = undefined;
    const answer = await send(address, request);
    const plain = given === undefined ? `${answer.httpStatus}` : `${answer.httpStatus} → ${String(given)}`;
    expect(cell?.(answer) ?? plain).toBe(ownCell(about));
  });

  test("every row is sent", () => {
    expect(rows.map(({ about }) => about).toSorted()).toEqual(tables[0]?.map(({ about }) => about).toSorted());
  });
});

/** The text that an echoing handler was given in its `f_string`, as the guide writes it. */
function echoed({ body }: HttpAnswer): string {
  const record: unknown = JSON.parse(body.toString());
  return /"fString":"([^"]*)"/.exec(JSON.stringify(record))?.[1] ?? "nothing";
}

const quoted = (answer: HttpAnswer): string => `\`${echoed(answer)}\``;
const status = ({ httpStatus }: HttpAnswer): string => String(httpStatus);

describe("what the guide says of other rules", () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startKitchenSink();
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  const rows: readonly (Sent & Required<Pick<Sent, "cell">>)[] = [
    { about: "`/files/50%25` to `/files/{path=**}`", request: "GET /v1/files/50%25", cell: quoted },
    { about: "`/files/1%2F2` to `/files/{path=**}`", request: "GET /v1/files/1%2F2", cell: quoted },
    {
      about: "`/shelves/1%2F2/books/3` to `/{name=shelves/*/books/*}`",
      request: "GET /v1/shelves/1%2F2/books/3",
      cell: (answer) => (echoed(answer) === "shelves/1%2F2/books/3" ? "keeps `%2F`" : echoed(answer)),
    },
    { about: "`/a:b` to `/{name}`, beside `/{name}:close`", request: "GET /v1/verbs/a:b", cell: quoted },
    {
      about: "HEAD where GET is",
      request: "HEAD /v1/query",
      cell: ({ httpStatus, header }) => (httpStatus === 200 && header.length > 1 ? "as GET" : String(httpStatus)),
    },
    { about: "a text that is not UTF-8, in a query", request: "GET /v1/query?fString=%ff", cell: status },
    { about: "an unknown enum name in a body", request: "POST /v1/sinks", body: '{"fEnum":"X"}', cell: status },
    { about: "text behind the JSON of a body", request: "POST /v1/sinks", body: "{} x", cell: status },
  ];

  test.each(rows)("$about", async ({ about, cell, ...request }) => {
    expect(cell(await send(gateway.address, request))).toBe(ownCell(about));
  });

  test("every row is sent", () => {
    expect(rows.map(({ about }) => about).toSorted()).toEqual(tables[1]?.map(({ about }) => about).toSorted());
  });
});

// What the gateway can do, and the name of a test that would fail if it could not.
const abilities = [
  {
    about: "a literal before `*` before `**`, in any order of declaration",
    own: "y",
    file: "rest/route-table.test.ts",
    proof: "finds the route that a search through all routes finds, in any order of declaration",
  },
  {
    about: "`DELETE /{id}` reached by `/me`, beside `GET /me`",
    own: "y",
    file: "corpus/paths.ts",
    proof: 'rule: "the method takes part in the search",\n    request: "DELETE /v1/match/me"',
  },
  {
    about: "two rules for the same paths",
    own: "refused at start, with all other problems",
    file: "rest/compile-routes.test.ts",
    proof: 'test("with all problems at once"',
  },
  { about: "`response_body`", own: "y", file: "corpus/answers.ts", proof: "response_body of a message" },
  {
    about: "custom kinds, `*` included",
    own: "y",
    file: "corpus/paths.ts",
    proof: "the custom kind * is every method",
  },
  {
    about: "rules from outside",
    own: "y",
    file: "rest/compile-routes.test.ts",
    proof: "replaces the annotation by the last rule",
  },
  {
    about: "unknown fields refused",
    own: "y, all named; or lenient, with a report",
    file: "corpus/queries.ts",
    proof: "all unknown parameters are named",
  },
  { about: "a body in gzip", own: "y, br and zstd too", file: "rest-http.test.ts", proof: "reads a body in $name" },
  { about: "CORS", own: "y", file: "rest-http.test.ts", proof: "answers a preflight of a listed origin" },
  {
    about: "errors before the RPC",
    own: "JSON, as all errors",
    file: "corpus/answers.ts",
    proof: "an error before the RPC has the same record",
  },
  {
    about: "an error record of one's own",
    own: "y",
    file: "rest/error-to-rest.test.ts",
    proof: "problemDetails",
  },
  {
    about: "trailers of a unary answer",
    own: "as header fields",
    file: "rest-http.test.ts",
    proof: "makes header fields of metadata",
  },
  {
    about: "server streams on REST",
    own: "y, by Accept",
    file: "rest-streams.test.ts",
    proof: "has the form of $type for Accept $accept",
  },
  {
    about: "streams of clients on REST",
    own: "y, a message per line",
    file: "rest-client-streams.test.ts",
    proof: "is read from a body of $name",
  },
];

/** What the gateway cannot do, though some of its peers can. */
const lacking = ["a service in another process or language"];

test.each(lacking)("the guide says that the gateway lacks %s", (about) => {
  expect(ownCell(about)).toBe("n");
});

test.each(abilities)("what the guide says of $about is tested in $file", ({ about, own, file, proof }) => {
  expect(ownCell(about)).toBe(own);
  expect(readFileSync(join(import.meta.dirname, file), "utf8").includes(proof), proof).toBe(true);
});

test("the guide says of HttpBody that it is not there, as long as no source knows it", () => {
  const folder = join(root, "src/gateway");
  const sources = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  const known = sources.some((name) => readFileSync(join(folder, name), "utf8").includes("google.api.HttpBody"));
  expect(ownCell("HttpBody as an answer")).toBe(known ? "y" : "not yet");
});

test("every ability of the guide is tested", () => {
  const told = [...abilities.map(({ about }) => about), ...lacking, "HttpBody as an answer"];
  expect(tables[2]?.map(({ about }) => about).toSorted()).toEqual(told.toSorted());
});
