import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { KitchenSink } from "../../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { projectFolder } from "@protoport/testing/process";
import { createGateway, type RestOptions, type RestProfile } from "../../../../src/index.ts";
import { createOpenApi } from "../../../../src/openapi/index.ts";
import { restProfiles } from "../../../../src/protocols/rest/rules/index.ts";

// Shows that rest.profile and rest.service's profile set options, and that a single option overrides them. The table in
// rest-options.md lists all options of a profile, and effects.test.ts shows what each does.

// oxfmt-ignore
const rules: NonNullable<RestOptions["rules"]> = [
  { selector: "greenhouse.v1.GreenhouseService.WatchReadings",
    pattern: { case: "get", value: "/sensors/{sensor}/readings" } },
];

async function send(
  rest: ProfileOptions,
  requestLine: string,
  body?: string,
  header: Record<string, string> = {},
): Promise<Seen> {
  const ignored: string[] = [];
  const { jsonOptions = {}, ...restOptions } = rest;
  const { fetch } = createGateway({
    rest: { rules, ...restOptions, onIgnored: (_, names) => void ignored.push(...names) },
    jsonOptions,
    routes: (router) => {
      router.service(GreenhouseService, {
        async *watchReadings() {
          yield { sensor: "s0" };
        },
      });
      router.service(KitchenSink, {
        query: (sink) => {
          if (sink.fString === "none") throw new ConnectError("no sink", Code.NotFound);
          return { rpc: "Query", sink };
        },
        replace: (sink) => ({ sink }),
      });
    },
  });
  const [method = "", path = ""] = requestLine.split(" ");
  const headers = { ...(body !== undefined && { "content-type": "application/json" }), ...header };
  const response = await fetch(
    new Request(`http://a${path}`, { method, headers, ...(body !== undefined && { body }) }),
  );
  const contentType = response.headers.get("content-type");
  return { httpStatus: response.status, contentType, text: await response.text() };
}

type Seen = { readonly httpStatus: number; readonly contentType: string | null; readonly text: string };

/** REST options, and JSON options that a profile sets too. */
interface ProfileOptions extends RestOptions {
  readonly jsonOptions?: { readonly alwaysEmitImplicit: boolean };
}

interface Case {
  readonly profile: RestProfile;
  readonly option: string;
  readonly off: ProfileOptions;
  readonly request: string;
  readonly body?: string;
  readonly header?: Record<string, string>;
}

const service = (options: ReturnType<NonNullable<RestOptions["service"]>>): RestOptions => ({ service: () => options });
const stream = "GET /sensors/x/readings";
// oxfmt-ignore
const cases: readonly Case[] = [
  { profile: "google", option: "errors", off: { errors: "status" }, request: "GET /v1/query?f_string=none" },
  { profile: "google", option: "endEvent", off: { endEvent: true }, request: stream,
    header: { accept: "text/event-stream" } },
  { profile: "google", option: "arrayStreams", off: service({ arrayStreams: false }), request: stream },
  { profile: "google", option: "ignoredQueryParameters", off: service({ ignoredQueryParameters: [] }),
    request: "GET /v1/query?$.xgafv=2" },
  { profile: "google", option: "partialResponses", off: service({ partialResponses: false }),
    request: "GET /v1/query?f_string=a", header: { "x-goog-fieldmask": "rpc" } },
  { profile: "grpc-gateway", option: "lenient", off: service({ lenient: false }), request: "GET /v1/query?unheard=1" },
  { profile: "grpc-gateway", option: "streamInResults", off: service({ streamInResults: false }), request: stream },
  { profile: "grpc-gateway", option: "alwaysEmitImplicit", off: { jsonOptions: { alwaysEmitImplicit: false } },
    request: "GET /v1/query" },
  { profile: "envoy", option: "lenient", off: service({ lenient: false }), request: "GET /v1/query?unheard=1" },
  { profile: "a2a", option: "errors", off: { errors: "status" }, request: "GET /v1/query?f_string=none" },
  { profile: "a2a", option: "contentType", off: { contentType: "application/json" }, request: "GET /v1/query" },
  { profile: "a2a", option: "endEvent", off: { endEvent: true }, request: stream,
    header: { accept: "text/event-stream" } },
  { profile: "a2a", option: "sameValueAsPath", off: service({ sameValueAsPath: false }), request: "PUT /v1/sinks/7",
    body: '{"fInt64":"8"}' },
  { profile: "a2a", option: "eventStreams", off: service({ eventStreams: false }), request: stream },
];

test.each(cases)(
  "rest.profile $profile sets the option $option unless it is configured",
  async ({ profile, off, request, body, header }) => {
    const strict = await send({}, request, body, header);
    const withProfile = await send({ profile }, request, body, header);
    expect(withProfile).not.toEqual(strict);
    expect(await send({ profile: "strict" }, request, body, header)).toEqual(strict);
    expect(await send({ profile, ...off }, request, body, header)).not.toEqual(withProfile);
  },
);

test.each(cases.filter(({ off }) => "service" in off))(
  "rest.profile $profile sets the option $option for a single service",
  async ({ profile, request, body, header }) => {
    const gatewayWide: RestOptions = { errors: "status", contentType: "application/json", endEvent: true };
    const ofAll = await send({ profile, ...gatewayWide }, request, body, header);
    expect(await send({ service: () => ({ profile }) }, request, body, header)).toEqual(ofAll);
    expect(
      await send({ profile, ...gatewayWide, service: () => ({ profile: "strict" }) }, request, body, header),
    ).toEqual(await send({}, request, body, header));
  },
);

test("rest.profile grpc-gateway documents all fields as present, because it writes default values", () => {
  const info = { title: "t", version: "1" };
  const json = (rest: RestOptions, alwaysEmitImplicit?: boolean): string => {
    const jsonOptions = alwaysEmitImplicit === undefined ? {} : { jsonOptions: { alwaysEmitImplicit } };
    return JSON.stringify(createOpenApi([KitchenSink], { info, rest, ...jsonOptions }));
  };
  const lists = { ...restProfiles["grpc-gateway"].service };
  expect(json({ profile: "grpc-gateway" })).toBe(json({ service: () => lists }, true));
});

test.each([
  ['rest.profile must be one of strict, google, grpc-gateway, envoy, a2a, got "gogle"', { profile: "gogle" }],
  [
    'profile of rest.service of kitchensink.v1.KitchenSink must be one of strict, google, grpc-gateway, envoy, a2a, got "toString"',
    { service: () => ({ profile: "toString" }) },
  ],
])('rest.profile rejects an unknown name with the error "$0"', (message, rest) => {
  const options = {
    rest,
    routes: (router: { service: (...args: unknown[]) => unknown }) => router.service(KitchenSink, {}),
  };
  expect(() => Reflect.apply(createGateway, undefined, [options])).toThrow(message);
});

function shown([option, value]: readonly [string, unknown]): string {
  if (Array.isArray(value)) return `\`${option}\` (${value.map((each) => `\`${each}\``).join(" ")})`;
  return value === true ? `\`${option}\`` : `\`${option}: ${JSON.stringify(value)}\``;
}

describe("the table of profiles in protoport/docs/reference/rest-options.md", () => {
  const page = readFileSync(join(projectFolder, "protoport/docs/reference/rest-options.md"), "utf8");
  const [, body = ""] = /^\| profile \| sets \|\n\|[-|]+\|\n((?:\|.*\n)+)/m.exec(page) ?? [];
  const { strict: _strict, ...documented } = restProfiles;
  const options = Object.entries(documented).map(([profile, parts]) => {
    const { service: ofService, errors, contentType, alwaysEmitImplicit } = parts;
    const values = Object.entries({
      ...ofService,
      ...(errors !== "status" && { errors }),
      ...(contentType !== "application/json" && { contentType }),
      ...(errors === "google" && { endEvent: false }),
      ...(alwaysEmitImplicit && { alwaysEmitImplicit }),
    });
    return { profile, values };
  });

  test("lists each option of each profile with its value", () => {
    const rows = options.map(({ profile, values }) => `| \`${profile}\` | ${values.map(shown).join(", ")} |`);
    expect(body.trim().split("\n")).toEqual(rows);
  });
});
