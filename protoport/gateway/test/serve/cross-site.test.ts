import { afterAll, describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { errorCodeOf, type GatewayOptions } from "../../src/index.ts";
// oxfmt-ignore
import { authorityOf, encodeEnvelope, type EveryTransport, type Field, type HttpRequest, openEveryTransport, rowsFor,
  transportNames, waterBedProcedure } from "@protoport/testing";

// Which pages may send a POST without a preflight, over every HTTP server and engine.

const shop = "https://shop.example";
const evil = "https://evil.example";
const own = "OWN";
const site = (value: string): Field => ["sec-fetch-site", value];
const from = (origin: string): Field => ["origin", origin];
const type = (value: string): Field => ["content-type", value];
const cookie: Field = ["cookie", "session=1"];
const credential = (scheme: string): Field => ["authorization", `${scheme} YWRhOjE=`];
let handled = 0;
let admitted = 0;
const refusals: unknown[] = [];
// The test's Fetch requests have no peer, so no proxy is trusted.
const notOverFetch = "a page of the forwarded host";

const open = async (options: Partial<GatewayOptions> = {}): Promise<EveryTransport> =>
  await openEveryTransport({
    routes: (router) => {
      router.service(GreenhouseService, { waterBed: () => ((handled += 1), {}) });
    },
    endpoints: [{ path: "/hook", httpMethods: ["POST"], open: true, handle: () => ({ httpStatus: 200, body: "" }) }],
    admit: () => void (admitted += 1),
    onError: (_, error) => void refusals.push(errorCodeOf(error)),
    ...options,
  });

const servers = {
  plain: await open(),
  listing: await open({ cors: { origins: [shop, "null"] } }),
  any: await open({ cors: { origins: "*" } }),
  allowing: await open({ crossSite: "allow" }),
  proxied: await open({ trustedProxies: { addresses: ["127.0.0.1"], fields: "x-forwarded" } }),
};

afterAll(async () => {
  await Promise.all(Object.values(servers).map((server) => server[Symbol.asyncDispose]()));
});

interface Row {
  readonly name: string;
  readonly header: readonly Field[];
  /** Default 403. */
  readonly httpStatus?: number;
  readonly server?: keyof typeof servers;
  /** Replaces members of a request with a JSON body over REST. */
  readonly request?: Partial<Omit<HttpRequest, "body">> & { readonly body?: Uint8Array | undefined };
}

const empty = Buffer.alloc(0);

// oxfmt-ignore
const rows: readonly Row[] = [
  { name: "curl, which sends neither field,", header: [], httpStatus: 200 },
  { name: "curl with a cookie", header: [cookie], httpStatus: 200 },
  { name: "a page of this site behind a proxy", header: [site("same-origin"), from(shop)], httpStatus: 200 },
  { name: "the address bar", header: [site("none")], httpStatus: 200 },
  { name: "a page of a sibling domain", header: [site("same-site"), from(shop)] },
  { name: "a page of another site", header: [site("cross-site"), from(evil)] },
  { name: "a page of another site without Origin", header: [site("cross-site")] },
  { name: "a page of another site that sends our origin", header: [site("cross-site"), from(own)] },
  { name: "an unknown Sec-Fetch-Site", header: [site("unknown")] },
  { name: "an empty Sec-Fetch-Site", header: [site(""), from(evil)] },
  { name: "two Sec-Fetch-Site values", header: [site("same-origin"), site("cross-site")] },
  { name: "an old browser's page of this site", header: [from(own)], httpStatus: 200 },
  { name: "an old browser's page over TLS", header: [from(own.replace("http:", "https:"))], httpStatus: 200 },
  { name: "an old browser's page of another site", header: [from(evil)] },
  { name: "an old browser's sandboxed page", header: [from("null")] },
  { name: "an old browser's page on another port", header: [from(`${own}0`)] },
  { name: "an origin without a host", header: [from("")] },
  { name: "two origins", header: [from(own), from(evil)] },
  { name: "an empty body from another site", header: [site("cross-site")], request: { body: empty } },
  { name: "no body from another site", header: [site("cross-site")], request: { body: undefined } },
  ...["text/plain", "text/plain;charset=UTF-8", "TEXT/Plain ; /", "multipart/form-data; boundary=x"].map((value) => ({ name: `the content type "${value}" from another site`,
    header: [site("cross-site"), type(value)],
  })),
  { name: "a form of another site", header: [site("cross-site"), type("application/x-www-form-urlencoded")] },
  { name: "an empty content type from another site", header: [site("cross-site"), type("")] },
  { name: "a form of this site", header: [site("same-origin"), type("text/plain")], httpStatus: 415 },
  { name: "JSON from another site", header: [site("cross-site"), type("application/json")], httpStatus: 200 },
  { name: "a longer type from another site", header: [site("cross-site"), type("text/plainer")], httpStatus: 415 },
  { name: "Connect from another site", header: [site("cross-site"), type("application/json")],
    request: { path: waterBedProcedure }, httpStatus: 200 },
  { name: "gRPC-Web from another site", header: [site("cross-site"), type("application/grpc-web+proto")],
    request: { path: waterBedProcedure, body: encodeEnvelope(0, empty) }, httpStatus: 200 },
  { name: "an RPC's path from another site", header: [site("cross-site")], request: { path: waterBedProcedure } },
  { name: "an endpoint from another site", header: [site("cross-site")], request: { path: "/hook" } },
  { name: "an endpoint from another server", header: [], request: { path: "/hook" }, httpStatus: 200 },
  { name: "a GET from another site", header: [site("cross-site")], request: get("/hook"), httpStatus: 405 },
  { name: "a listed origin", server: "listing", header: [site("cross-site"), from(shop), cookie], httpStatus: 200 },
  { name: "a listed origin in an old browser", server: "listing", header: [from(shop)], httpStatus: 200 },
  { name: "the listed origin null", server: "listing", header: [site("cross-site"), from("null")], httpStatus: 200 },
  { name: "an unlisted origin", server: "listing", header: [site("cross-site"), from(evil)] },
  { name: "no origin, if some are listed,", server: "listing", header: [site("cross-site")] },
  { name: "any origin, if all are allowed,", server: "any", header: [site("cross-site"), from(evil)], httpStatus: 200 },
  { name: "any origin with a cookie", server: "any", header: [site("cross-site"), from(evil), cookie] },
  { name: "any origin with a password", server: "any", header: [site("cross-site"), from(evil), credential("Basic")] },
  { name: "any origin with a scheme only", server: "any", header: [from(evil), ["authorization", "Bearer"]] },
  { name: "any origin with a token", server: "any", header: [from(evil), credential("bearer")], httpStatus: 200 },
  { name: "another site, if crossSite allows it,", server: "allowing", header: [site("cross-site")], httpStatus: 200 },
  { name: notOverFetch, server: "proxied", header: [from(shop), ...forwarded(shop)], httpStatus: 200 },
  { name: "a page of another forwarded host", server: "proxied", header: [from(shop), ...forwarded(evil)] },
  { name: "a client that forwards a host itself", header: [from(shop), ...forwarded(shop)] },
];

function get(path: string): Row["request"] & object {
  return { httpMethod: "GET", path, body: undefined };
}

function forwarded(origin: string): readonly Field[] {
  return Object.entries({ "x-forwarded-for": "192.0.2.1", "x-forwarded-host": new URL(origin).host });
}

describe.each(transportNames)("over %s", (transport) => {
  const sent = rowsFor(transport, transportNames, rows).filter(
    ({ name }) => transport !== "Fetch" || name !== notOverFetch,
  );

  test.each(sent)("$name gets its status", async (row) => {
    const { header, server = "plain", request, httpStatus = 403 } = row;
    handled = 0;
    admitted = 0;
    refusals.length = 0;
    const { [server]: gateway } = servers;
    const host = transport === "Fetch" ? "fetch.example" : authorityOf(gateway.addressOf(transport)[0]);
    const fields = header.map(([name, value]): Field => [name, value.replace(own, `http://${host}`)]);
    const base = { httpMethod: "POST", path: "/beds/7:water", body: Buffer.from('{"liters":3}'), header: fields };
    const { body, ...head } = { ...base, ...request };
    const response = await gateway.ask(transport, body === undefined ? head : { ...head, body });
    expect(response.httpStatus).toBe(httpStatus);
    if (httpStatus !== 403) return;
    expect([handled, admitted, refusals]).toEqual([0, 0, ["ERR_CROSS_SITE"]]);
    expect(String(response.body)).toContain("pages of other sites may not send this request");
  });
});

test("an unknown value of crossSite is refused at the start", async () => {
  const opening = open({ crossSite: Object("deny") });
  await expect(opening).rejects.toThrow('crossSite must be one of allow, refuse, got "deny"');
});
