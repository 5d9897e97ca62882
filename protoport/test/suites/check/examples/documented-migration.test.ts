import { describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGateway, type RestProfile } from "../../../../gateway/src/index.ts";
import { exchangeHttp1, type Field, shared, startKitchenSink } from "@protoport/testing";
import { readPage } from "../../../support/docs/page-blocks.ts";
import { type Case, cases } from "../../../../gateway/test/migration/cases.ts";

// The responses that protoport/docs/how-to/migration.md documents, with each section's profile. documented-programs.test.ts runs
// the page's blocks.

const sections: Readonly<Record<string, RestProfile>> = {
  "From grpc-gateway": "grpc-gateway",
  "From Envoy's transcoder": "envoy",
};

interface Sent {
  readonly about: string;
  readonly request: string;
  readonly header?: readonly Field[];
  readonly body?: string;
  /** The status, and the message that the handler got if it was called. */
  readonly response: readonly unknown[];
}

const seven: readonly unknown[] = [200, { fInt64: "7" }];
const text: readonly Field[] = [["content-type", "text/plain"]];
const override: readonly Field[] = [["x-http-method-override", "DELETE"]];

const sent: Readonly<Record<string, readonly Sent[]>> = {
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

const page = readPage("protoport/docs/how-to/migration.md");
const sectionOf = (title: string): string => page.split("\n## ").find((part) => part.startsWith(`${title}\n`)) ?? "";

describe.each(Object.entries(sections))('the section "%s"', (title, profile) => {
  const gateway = shared(() => startKitchenSink({ rest: { profile }, jsonOptions: { alwaysEmitImplicit: false } }));

  test("names the profile", () => {
    const [, block = ""] = sectionOf(title).split("```");
    expect(block).toContain(`profile: "${profile}"`);
  });

  test.each(sent[title] ?? [])("for $about, the gateway responds to $request as documented", async (testCase) => {
    expect(sectionOf(title)).toContain(`\n| ${testCase.about}`);
    const [httpMethod = "", path = ""] = testCase.request.split(" ");
    const type: readonly Field[] = [["content-type", "application/json"]];
    const header =
      testCase.body === undefined ? [] : [...(testCase.header ?? []), ...(testCase.header === text ? [] : type)];
    const head = { httpMethod, path, header };
    const body = testCase.body === undefined ? {} : { body: Buffer.from(testCase.body) };
    const received = await exchangeHttp1(gateway.address, { ...head, ...body });
    const messages =
      received.httpStatus === 200 && httpMethod !== "HEAD" ? [JSON.parse(received.body.toString()).sink] : [];
    expect([received.httpStatus, ...messages]).toEqual(testCase.response);
  });
});

async function nameWith(rest: object): Promise<unknown> {
  await using gateway = await startKitchenSink({ rest: { profile: "grpc-gateway", ...rest } });
  const { body } = await exchangeHttp1(gateway.address, { httpMethod: "GET", path: "/v1/files/a%2Fb/c", header: [] });
  return JSON.parse(String(body)).sink.fString;
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
