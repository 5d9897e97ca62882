import { writeFileSync } from "node:fs";
import type { DescService } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { afterAll, expect, test } from "vitest";
import { GreenhouseService } from "../../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { OrderService } from "../../../../../testing/src/gen/orders/v1/orders_pb.ts";
import { descriptorSetOf } from "../../../../../testing/src/gateway/descriptor-set.ts";
import { greenhouseWithOptions, scopedGreenhouse } from "../../../../../testing/src/gateway/restricted.ts";
import { createTempFolder } from "../../../../../testing/src/process/temp-folder.ts";
import { proxyCommand } from "../../../../src/command/program.ts";

// Reports RPCs whose option plantstore.auth.v1.required_scopes the proxy does not check.

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());

const served = GreenhouseService.typeName;
const scoped = scopedGreenhouse({
  GetReading: [],
  WaterBed: ["water"],
  WatchReadings: ["read", "watch"],
  RecordReadings: ["record"],
});
const data = new BinaryWriter().uint32(1).finish();
const invalid = greenhouseWithOptions({ WaterBed: { no: 57386, wireType: WireType.Varint, data } });

function write(name: string, content: string | Uint8Array): string {
  writeFileSync(folder.file(name), content);
  return JSON.stringify(folder.file(name));
}

/** Runs `--check`, and returns what it prints on standard error. */
async function check(services: readonly DescService[], settings: readonly string[]): Promise<readonly string[]> {
  const upstreams = services.map(({ typeName, file }) => {
    const descriptors = write(`${typeName}.binpb`, descriptorSetOf(file));
    return `- { addresses: ["http://127.0.0.1:1"], descriptors: ${descriptors} }`;
  });
  write("proxy.yaml", ["upstreams:", ...upstreams, ...settings].join("\n"));
  const errors: string[] = [];
  const exitCode = await proxyCommand(["--config", folder.file("proxy.yaml"), "--check"], {
    print: () => undefined,
    printError: (text) => void errors.push(text),
    stopRequested: () => new Promise(() => undefined),
    onHangup: () => undefined,
  });
  expect(exitCode).toBe(0);
  return errors;
}

const authentication = ["authentication:", `  tokens: [{ file: ${write("token", "a-token-of-sufficient-length")} }]`];

test.each<{ name: string; service?: DescService; settings: readonly string[]; unchecked: readonly string[] }>([
  {
    name: "all scopes are reported without authentication.scopes",
    settings: authentication,
    unchecked: ["WaterBed", "WatchReadings", "RecordReadings"],
  },
  {
    name: "scopes that authentication.scopes requires are not reported",
    settings: [
      ...authentication,
      `  scopes: { ${served}.*: watch, ${served}.WaterBed: water, ${served}.RecordReadings: other }`,
    ],
    unchecked: ["WatchReadings", "RecordReadings"],
  },
  {
    name: "scopes of open RPCs are not reported",
    settings: [...authentication, `  open: [/${served}/WaterBed, /${served}/WatchReadings]`],
    unchecked: ["RecordReadings"],
  },
  {
    name: "scopes of open services are not reported",
    settings: [...authentication, `  open: [${served}]`],
    unchecked: [],
  },
  {
    name: "an option that is not valid is reported",
    service: invalid,
    settings: authentication,
    unchecked: ["WaterBed"],
  },
  { name: "no scopes are reported without authentication", settings: [], unchecked: [] },
])("$name", async ({ service = scoped, settings, unchecked }) => {
  const names = unchecked.map((name) => `${served}.${name}`).join(", ");
  const line =
    `authentication does not check the option plantstore.auth.v1.required_scopes of ${names}: require the scopes with ` +
    "authentication.scopes";
  // The other service has no scopes.
  expect(await check([OrderService, service], settings)).toEqual(unchecked.length === 0 ? [] : [line]);
});
