import { expect, test } from "vitest";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { exchangeFetch } from "../../../../../testing/src/http/fetch.ts";
import { compareValues, Differs, type EffectsOf } from "../../../../../testing/src/comparison.ts";
import { statelessRequest, toolNameOf } from "../../../../../testing/src/gateway/mcp.ts";
import { KitchenSink, NestedSchema } from "../../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { SignupService } from "../../../../../testing/src/gen/signup/v1/signup_pb.ts";
import { createGateway, type GatewayOptions } from "../../../../src/index.ts";
import { createOpenApi, type OpenApiError, type OpenApiOptions } from "../../../../src/openapi/index.ts";
import {
  createMcp,
  type McpOptions,
  type McpStreamLimits,
  type McpToolHints,
  type McpToolOptions,
} from "../../../../src/mcp/index.ts";
import { openValidation } from "../../../../src/validation/index.ts";

// Describes services with two values for each createMcp and createOpenApi option, and compares the descriptions.

const validation = await openValidation();
const services = [GreenhouseService, SignupService];
const watchReadings = `${GreenhouseService.typeName}.WatchReadings`;
const reading = GreenhouseService.method.getReading;
const comments = new Map([[`${reading.parent.typeName}.${reading.name}`, "A comment of the option."]]);

const routes: GatewayOptions["routes"] = (router) => {
  router.service(SignupService, {});
  router.service(GreenhouseService, {
    async *watchReadings({ count }) {
      for (let at = 0; at < count; at++) {
        yield { sensor: "x".repeat(100) };
        await new Promise(setImmediate);
      }
    },
  });
};

/** Compares the responses to an MCP request. */
function compareTools(
  on: Partial<McpOptions>,
  method: string = "tools/list",
  params: Parameters<typeof statelessRequest>[1] = {},
  off: Partial<McpOptions> = {},
): Promise<Differs> {
  const usual: McpOptions = { tools: [`${GreenhouseService.typeName}.*`, `${SignupService.typeName}.Register`] };
  return compareValues<Partial<McpOptions>>(off, on, async (options) => {
    const { fetch } = createGateway({ routes, mcp: createMcp({ ...usual, ...options }) });
    const { httpStatus, body } = await exchangeFetch(fetch, statelessRequest(method, params));
    return [httpStatus, String(body)];
  });
}

/** Calls WatchReadings, which sends this many messages. */
const watch = (count: number): Parameters<typeof statelessRequest>[1] => ({
  name: toolNameOf(`/${GreenhouseService.typeName}/WatchReadings`),
  arguments: { sensor: "a", count },
});

const toolEffects: EffectsOf<McpOptions> = {
  tools: () => compareTools({ tools: [watchReadings] }),
  path: () => compareTools({ path: "/tools" }),
  serverInfo: () => compareTools({ serverInfo: { name: "shop", version: "2" } }, "server/discover"),
  instructions: () => compareTools({ instructions: "Read before you water." }, "server/discover"),
  scopesOf: () => compareTools({ scopesOf: () => ["a"] }),
  isListed: () => compareTools({ isListed: () => false }),
  comments: () => compareTools({ comments }),
  validation: () => compareTools({ validation }),
  paramHeaders: () => compareTools({ paramHeaders: { [`${reading.input.typeName}.sensor`]: "Sensor" } }),
  stream: () => compareTools({ stream: { maxMessages: 1 } }, "tools/call", watch(3)),
};

const streamEffects: EffectsOf<McpStreamLimits> = {
  maxMessages: () => compareTools({ stream: { maxMessages: 1 } }, "tools/call", watch(3)),
  maxBytes: () => compareTools({ stream: { maxBytes: 150 } }, "tools/call", watch(3)),
  timeoutMs: () =>
    compareTools({ stream: { timeoutMs: 1, maxMessages: 1_000_000, maxBytes: 2 ** 30 } }, "tools/call", watch(20_000), {
      stream: { maxMessages: 1_000_000, maxBytes: 2 ** 30 },
    }),
};

/** Compares the lists with one tool for two descriptions. */
const compareTool = (on: McpToolOptions): Promise<Differs> =>
  compareTools(
    { tools: (method) => method === reading && on },
    "tools/list",
    {},
    { tools: (method) => method === reading },
  );

const toolOptionEffects: EffectsOf<McpToolOptions> = {
  name: () => compareTool({ name: "read" }),
  title: () => compareTool({ title: "Read a sensor" }),
  description: () => compareTool({ description: "Reads." }),
  hints: () => compareTool({ hints: { openWorld: false } }),
};

const hintEffects: EffectsOf<McpToolHints> = {
  readOnly: () => compareTool({ hints: { readOnly: false } }),
  destructive: () => compareTool({ hints: { destructive: true } }),
  idempotent: () => compareTool({ hints: { idempotent: true } }),
  openWorld: () => compareTool({ hints: { openWorld: false } }),
};

/** Compares the documents for two option values. */
function compareDocuments(on: Partial<OpenApiOptions>, off: Partial<OpenApiOptions> = {}): Promise<Differs> {
  return compareValues<Partial<OpenApiOptions>>(off, on, (options) =>
    Promise.resolve(
      JSON.stringify(createOpenApi(services, { info: { title: "Greenhouse", version: "1" }, ...options })),
    ),
  );
}

const securitySchemes = { token: { type: "http", scheme: "bearer" } } as const;

const documentEffects: EffectsOf<OpenApiOptions> = {
  openapi: () => compareDocuments({ openapi: "3.2.0" }, { openapi: "3.1.0" }),
  info: () => compareDocuments({ info: { title: "Shop", version: "2" } }),
  servers: () => compareDocuments({ servers: [{ url: "https://shop.example" }] }),
  comments: () => compareDocuments({ comments }),
  rest: () => compareDocuments({ rest: { emptyResponse: 204, errors: "problem" } }),
  jsonOptions: () => compareDocuments({ jsonOptions: { useProtoFieldName: true } }),
  validation: () => compareDocuments({ validation }),
  mcp: () => compareDocuments({ mcp: createMcp({ tools: [`${GreenhouseService.typeName}.GetReading`] }) }),
  operationIds: () => compareDocuments({ operationIds: "full" }),
  errors: () => compareDocuments({ errors: [{ status: "4XX", description: "Refused.", record: NestedSchema }] }),
  describeSuccess: () => compareDocuments({ describeSuccess: () => "The result." }),
  describeHeader: () => compareDocuments({ describeHeader: () => [{ name: "x-shop", schema: { type: "string" } }] }),
  onOmitted: () =>
    compareValues(false, true, (isSet) => {
      const omitted: unknown[] = [];
      // OpenAPI does not have PROPFIND, a method in its rules.
      createOpenApi([KitchenSink], {
        info: { title: "Sink", version: "1" },
        ...(isSet && { onOmitted: () => void omitted.push(1) }),
      });
      return Promise.resolve(omitted);
    }),
  securitySchemes: () => compareDocuments({ securitySchemes }),
  security: () => compareDocuments({ securitySchemes, security: [] }, { securitySchemes }),
  describeSecurity: () =>
    compareDocuments(
      { securitySchemes, describeSecurity: (method) => (method === reading ? [] : undefined) },
      { securitySchemes },
    ),
};

/** Compares the documents for two error descriptions. */
function compareErrors(on: Partial<OpenApiError>): Promise<Differs> {
  const usual: OpenApiError = { status: "4XX", description: "Refused.", record: NestedSchema };
  return compareDocuments({ errors: [{ ...usual, ...on }] }, { errors: [usual] });
}

const errorEffects: EffectsOf<OpenApiError> = {
  status: () => compareErrors({ status: "400" }),
  description: () => compareErrors({ description: "Not accepted." }),
  record: () => compareErrors({ record: { type: "object" } }),
  contentType: () => compareErrors({ contentType: "application/problem+json" }),
  codeField: () => compareErrors({ codeField: "number" }),
  example: () => compareErrors({ example: { text: "no such bed" } }),
};

const tables: Readonly<Record<string, Readonly<Record<string, () => Promise<Differs>>>>> = {
  createMcp: toolEffects,
  "stream of createMcp": streamEffects,
  "a tool": toolOptionEffects,
  "the hints of a tool": hintEffects,
  createOpenApi: documentEffects,
  "errors of createOpenApi": errorEffects,
};

test.each(
  Object.entries(tables).flatMap(([owner, effects]) =>
    Object.entries(effects).map(([name, comparison]) => ({ owner, name, comparison })),
  ),
)("the option $name of $owner has an effect", async ({ comparison }) => {
  await expect(comparison()).resolves.toBeInstanceOf(Differs);
});
