import type { ConnectRouter } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGateway, type RestProfile } from "../../../../gateway/src/index.ts";
// oxfmt-ignore
import { type Address, createTestGateway, exchangeHttp1, type Field, type HttpResponse, listenForTests, shared,
  startKitchenSink } from "@protoport/testing";
import { OrderService } from "../../../../testing/src/gen/orders/v1/orders_pb.ts";
import { readPage } from "../../../support/docs/page-blocks.ts";
import { type Case, cases } from "../../../../gateway/test/migration/cases.ts";

// Sends the requests in the tables of protoport/docs/how-to/migration.md and protoport/docs/reference/rest.md to the
// gateway, and compares the responses. documented-programs.test.ts runs the pages' blocks.

interface Sent {
  /** The first column of the request's row, or its start. */
  readonly about: string;
  readonly request: string;
  readonly header?: readonly Field[];
  readonly body?: string;
}

const page = readPage("protoport/docs/how-to/migration.md");
const sectionOf = (title: string): string => page.split("\n## ").find((part) => part.startsWith(`${title}\n`)) ?? "";
const json: readonly Field[] = [["content-type", "application/json"]];

/** Sends a request, which has a content type if it has a body. */
async function send(address: Address, { request, header, body }: Omit<Sent, "about">): Promise<HttpResponse> {
  const [httpMethod = "", path = ""] = request.split(" ");
  if (body === undefined) return await exchangeHttp1(address, { httpMethod, path, header: [] });
  return await exchangeHttp1(address, { httpMethod, path, header: header ?? json, body: Buffer.from(body) });
}

const bodyOf = ({ body }: HttpResponse) => JSON.parse(body.toString());

const profiles: Readonly<Record<string, RestProfile>> = {
  "From grpc-gateway": "grpc-gateway",
  "From Envoy's transcoder": "envoy",
};
const seven: readonly unknown[] = [200, { fInt64: "7" }];
const text: readonly Field[] = [["content-type", "text/plain"]];
const override: readonly Field[] = [...json, ["x-http-method-override", "DELETE"]];

/** Each section's requests, with the status, and the message that the handler got if it was called. */
const sentByProfile: Readonly<Record<string, readonly (Sent & { readonly response: readonly unknown[] })[]>> = {
  "From grpc-gateway": [
    { about: "an unknown enum name", request: "PUT /v1/sinks/7", body: '{"fEnum":"BLUE"}', response: seven },
    { about: "`%2F` in `{id}`", request: "GET /v1/string/a%2Fb", response: [200, { fString: "a/b" }] },
    { about: "`/orders/` sets", request: "GET /v1/string/", response: [404] },
    { about: "`?note=a;b`", request: "GET /v1/query?fString=a;b", response: [200, { fString: "a;b" }] },
    { about: "501 for", request: "PUT /v1/int64/7", response: [405] },
    { about: "501 for", request: "HEAD /v1/int64/7", response: [200] },
    { about: "`007`", request: "GET /v1/int64/007", response: [400] },
    { about: "`007`", request: "GET /v1/int64/0x7", response: [400] },
    { about: "`007`", request: "GET /v1/int64/+7", response: [400] },
    { about: "any content type", request: "PUT /v1/sinks/7", header: text, body: "{}", response: [415] },
    { about: "text behind", request: "PUT /v1/sinks/7", body: "{} x", response: [400] },
    { about: "`X-HTTP", request: "POST /v1/sinks", header: override, body: '{"fInt64":"7"}', response: seven },
  ],
  // oxfmt-ignore
  "From Envoy's transcoder": [
    { about: "`auto_mapping`", request: "POST /kitchensink.v1.KitchenSink/Unbound", body: '{"fInt64":"7"}',
      response: seven },
    { about: "`+` in a query", request: "GET /v1/query?fString=a+b", response: [200, { fString: "a b" }] },
    { about: "`/orders/7/`", request: "GET /v1/int64/7/", response: [404] },
    { about: "`010`", request: "GET /v1/int64/010", response: [400] },
    { about: "`010`", request: "GET /v1/int64/+7", response: [400] },
    { about: "`case_insensitive", request: "PUT /v1/sinks/7", body: '{"fEnum":"color_red"}', response: seven },
    { about: "what matches nothing", request: "GET /v1/nothing", response: [404] },
    { about: "what matches nothing", request: "PUT /v1/int64/7", response: [405] },
  ],
};

describe.each(Object.entries(profiles))('the section "%s"', (title, profile) => {
  const gateway = shared(() => startKitchenSink({ rest: { profile }, jsonOptions: { alwaysEmitImplicit: false } }));

  test("names the profile", () => {
    const [, block = ""] = sectionOf(title).split("```");
    expect(block).toContain(`profile: "${profile}"`);
  });

  test.each(sentByProfile[title] ?? [])("for $about, the gateway responds to $request as documented", async (sent) => {
    expect(sectionOf(title)).toContain(`\n| ${sent.about}`);
    const received = await send(gateway.address, sent);
    const hasMessage = received.httpStatus === 200 && !sent.request.startsWith("HEAD");
    expect([received.httpStatus, ...(hasMessage ? [bodyOf(received).sink] : [])]).toEqual(sent.response);
  });
});

async function nameWith(rest: object): Promise<unknown> {
  await using gateway = await startKitchenSink({ rest: { profile: "grpc-gateway", ...rest } });
  return bodyOf(await send(gateway.address, { request: "GET /v1/files/a%2Fb/c" })).sink.fString;
}

test("with fullyDecodeReservedExpansion, %2F in {name=**} is a slash as in grpc-gateway's default", async () => {
  expect(sectionOf("From grpc-gateway")).toContain("\n| `%2F` in `{name=**}` is a slash (`UnescapingModeLegacy`");
  expect([await nameWith({ fullyDecodeReservedExpansion: true }), await nameWith({})]).toEqual(["a/b/c", "a%2Fb/c"]);
});

test("a handler reads the header field cookie, not grpcgateway-cookie", async () => {
  expect(sectionOf("From grpc-gateway")).toContain("\n| cookies are the metadata `grpcgateway-cookie` | `cookie`, for");
  const response = await createGateway({
    rest: { profile: "grpc-gateway" },
    routes: (router) =>
      router.service(GreenhouseService, {
        getReading: (_, { requestHeader }) => ({
          sensor: `${requestHeader.get("cookie")}, ${requestHeader.get("grpcgateway-cookie")}`,
        }),
      }),
  }).fetch(new Request("http://a/sensors/s/reading", { headers: { cookie: "a=b" } }));
  expect(await response.json()).toMatchObject({ sensor: "a=b, null" });
});

const count = (fits: (one: Case) => boolean): number => cases.filter(fits).reduce((sum, { of }) => sum + of.length, 0);

test("migration.md states the correct counts of grpc-gateway's test requests", () => {
  const section = sectionOf("From grpc-gateway").replaceAll("\n", " ");
  const otherwise = cases.filter(({ refused, missing }) => refused !== undefined || missing !== undefined);
  const byOption = count(({ by }) => by !== undefined);
  expect(section).toContain(`integration tests send ${count(() => true)} requests`);
  const same = count((one) => one.by === undefined && !otherwise.includes(one));
  expect(section).toContain(`${same} get the same response without options`);
  expect(section).toContain(`and ${byOption} more with the profile`);
  expect(count(({ missing }) => missing !== undefined)).toBe(1);
  expect(section).toContain("One is not supported");
  expect(section).toContain(
    `${count(({ refused }) => refused !== undefined)} get another response because a standard requires it`,
  );
  for (const { refused } of cases)
    expect(section).toContain(refused?.because.match(/^(?:RFC \d+|\w+\.proto)/)?.[0] ?? "");
});

const [, comparison = ""] = page.split("\n## Compared with other gateways\n");
const tables = comparison.split(/\n\n/).filter((part) => part.startsWith("|"));
const rows = tables.map((part) => part.trim().split("\n").slice(2).map(cellsOf));
const cellsOfRequests = new Map(rows.flat());

/** Returns the first two cells of a row: the request, and the gateway's response to it. */
function cellsOf(line: string): [about: string, own: string] {
  const [about = "", own = ""] = line
    .split(/(?<!\\)\|/)
    .slice(1, -1)
    .map((cell) => cell.trim());
  return [about, own];
}

type Compared = Sent & { readonly cell: (response: HttpResponse) => string };
/** Returns the `f_string` that an echoing handler got, as the page writes it. */
const quoted: Compared["cell"] = ({ body }) =>
  `\`${/"fString":"([^"]*)"/.exec(JSON.stringify(JSON.parse(String(body))))?.[1] ?? "nothing"}\``;
const status: Compared["cell"] = ({ httpStatus }) => String(httpStatus);

/** Requests to `DELETE /orders/{id}`. The cell shows the status, and the id that the handler got. */
const deletions = ["010", "null", "7;x=1", "7/"].map((id) => ({
  about: `\`/orders/${id}\``,
  request: `DELETE /orders/${id}`,
}));

// oxfmt-ignore
const otherRules: readonly Compared[] = [
  { about: "`/files/1%2F2` to `/files/{path=**}`", request: "GET /v1/files/1%2F2", cell: quoted },
  { about: "HEAD where GET is", request: "HEAD /v1/query",
    cell: ({ httpStatus, header }) => (httpStatus === 200 && header.length > 1 ? "as GET" : String(httpStatus)) },
  { about: "a string that is not UTF-8, in a query", request: "GET /v1/query?fString=%ff", cell: status },
  { about: "an unknown enum name in a body", request: "POST /v1/sinks", body: '{"fEnum":"X"}', cell: status },
  { about: "text after the JSON of a body", request: "POST /v1/sinks", body: "{} x", cell: status },
];

test("each request in the comparison with other gateways is tested", () => {
  const tested = [...deletions, ...otherRules].map(({ about }) => about);
  expect(tested.toSorted()).toEqual(rows[0]?.map(([about]) => about).toSorted());
});

describe("the gateway's response to a DELETE /orders/{id} request", () => {
  let received: bigint | undefined;
  const routes = (router: ConnectRouter): void =>
    void router.service(OrderService, { deleteOrder: ({ id }) => ((received = id), {}) });
  const gateway = shared(() => listenForTests(createTestGateway({ routes })));

  test.each(deletions)('for "$about" is as compared with other gateways', async ({ about, request }) => {
    received = undefined;
    const { httpStatus } = await send(gateway.address, { request });
    expect(received === undefined ? `${httpStatus}` : `${httpStatus} → ${String(received)}`).toBe(
      cellsOfRequests.get(about),
    );
  });
});

describe("the gateway's response with other HTTP rules", () => {
  const gateway = shared(() => startKitchenSink());

  test.each(otherRules)('for "$about" is as compared with other gateways', async ({ about, cell, ...request }) => {
    expect(cell(await send(gateway.address, request))).toBe(cellsOfRequests.get(about));
  });

  // oxfmt-ignore
  const undefinedRequests: readonly (Sent & { readonly want: object })[] = [
    { about: "`//v1/query`, an empty segment", request: "GET //v1/query", want: { httpStatus: 404 } },
    { about: "`/v1/files/a//b` to `/v1/files/{path=**}`", request: "GET /v1/files/a//b",
      want: { httpStatus: 200, json: { sink: { fString: "a//b" } } } },
    { about: "`?fString=a;b`", request: "GET /v1/query?fString=a;b",
      want: { httpStatus: 200, json: { sink: { fString: "a;b" } } } },
    { about: "`?readMask=`", request: "GET /v1/shelves/1?readMask=",
      want: { httpStatus: 200, json: { name: "shelves/1", readMask: "" } } },
    { about: 'an empty body where the rule has `body: "tags"`', request: "PATCH /v1/body/tags", body: "",
      want: { httpStatus: 200, json: { sink: expect.not.objectContaining({ tags: expect.anything() }) } } },
  ];

  test.each(undefinedRequests)('to "$about" is as documented in rest.md', async ({ want, ...request }) => {
    const response = await send(gateway.address, request);
    expect({ httpStatus: response.httpStatus, json: bodyOf(response) }).toMatchObject(want);
  });

  test("is tested for every request that google/api/http.proto does not define", () => {
    const [table = ""] =
      /(?<=do not say how to read these requests:\n\n)(?:\|.*\n)+/.exec(readPage("protoport/docs/reference/rest.md")) ??
      [];
    const documented = table
      .split("\n")
      .slice(2, -1)
      .map((line) => line.split("|")[1]?.trim());
    expect(documented).toEqual(undefinedRequests.map(({ about }) => about));
  });
});
