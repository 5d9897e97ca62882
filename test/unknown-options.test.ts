import { describe, expect, test } from "vitest";
import { openTokenVerifier } from "@protoport/auth";
import { createGateway } from "@protoport/gateway";
import { silentLog } from "@protoport/telemetry/logs";
import { Readiness } from "@protoport/gateway/health";
import {
  acceptedNames,
  describeRequiredOptions,
  describeUnknownOptions,
} from "../protoport/testing/src/options/unknown-options.ts";
import { createPlantClient } from "../src/client/index.ts";
import {
  createPlantServer,
  openMemoryStore,
  openPlantStore,
  openSqliteStore,
  createPlantGatewayOptions,
  type TokenVerifier,
} from "../src/index.ts";
import { settings } from "../src/server/index.ts";
import { plantStoreTree } from "./support/source-files.ts";

// The plant store's API refuses unknown names in every options object. Its types are read from the sources.

const readiness = new Readiness({});
const store = openMemoryStore();
const rejectAll: TokenVerifier = { verify: () => ({ kind: "unknown", reason: "none is known" }) };
const client = { address: "127.0.0.1:1", token: "a" };

describeUnknownOptions({
  tree: plantStoreTree,
  isCovered: () => true,
  gives: {
    PlantGatewayParts: (wrong) =>
      createPlantGatewayOptions({ store, verifier: rejectAll, readiness, log: silentLog, ...wrong }),
    PlantServerOptions: (wrong) => createPlantServer({ store, ...wrong }),
    StoreOptions: (wrong) => openPlantStore({ kind: "sqlite", path: "/nowhere/a.db" }, wrong),
    DurableStoreOptions: (wrong) => openPlantStore({ kind: "postgres", url: "postgres://127.0.0.1:1/a" }, wrong),
    IdRange: (wrong) =>
      openPlantStore(
        { kind: "sqlite", path: "/nowhere/a.db" },
        { plantsWhenCreated: { first: 1n, last: 1n, ...wrong } },
      ),
    SqliteStoreOptions: (wrong) => openSqliteStore({ file: "/nowhere/a.db", ...wrong }),
    DatabaseOptions: (wrong) =>
      openSqliteStore({ file: "/nowhere/a.db", plantsWhenCreated: { first: 1n, last: 1n, ...wrong } }),
    PlantClientOptions: (wrong) => createPlantClient({ ...client, ...wrong }),
    CallOptions: async (wrong) => {
      const plants = createPlantClient(client);
      try {
        await plants.delete(1n, wrong);
      } finally {
        plants.close();
      }
    },
  },
  others: {
    PlantStore: "may be of any class",
    WaitingDeletions: "of a store",
    StoreConnections: "of a store",
    StoreFile: "of a store",
    DeleteCall: "an argument of stores",
  },
});

describe("a store location", () => {
  test("an unknown name gets the nearest known name as suggestion", async () => {
    const location = { kind: "sqlite", path: "/nowhere/a.db", pathh: 1 } as const;
    await expect(async () => await openPlantStore(location)).rejects.toThrow(
      'unknown option "pathh", did you mean "path"?',
    );
  });

  test("an unknown kind is refused with the known kinds", async () => {
    await expect(
      async () => await Reflect.apply(openPlantStore, undefined, [{ kind: "postgre", url: "a" }]),
    ).rejects.toThrow('kind of openPlantStore must be one of memory, sqlite, postgres, got "postgre"');
  });
});

describe("required options", () => {
  describeRequiredOptions([
    [createPlantGatewayOptions, ["store", "verifier", "readiness", "log"]],
    [createPlantServer, ["store"]],
    [openSqliteStore, ["file"]],
    [createPlantClient, ["address", "token"]],
  ]);
});

test("every setting has the name of an option in code, except for those of the command and the store", async () => {
  const functions: readonly ((wrong: object) => unknown)[] = [
    (wrong) => createPlantServer({ store, ...wrong }),
    (wrong) => createGateway({ routes: () => undefined }).listen({ host: "127.0.0.1", port: 0, ...wrong }),
    (wrong) => openTokenVerifier(wrong, silentLog),
    (wrong) => openTokenVerifier({ jwt: [{ issuer: "a", audiences: ["b"], ...wrong }] }, silentLog),
    (wrong) =>
      openTokenVerifier({ introspection: { url: "a", clientId: "b", clientSecretFile: "c", ...wrong } }, silentLog),
  ];
  const options = (await Promise.all(functions.map(acceptedNames))).flat();
  const others = Object.keys(settings).filter((setting) => {
    const name = setting.replace(/^(?:jwt|introspection)([A-Z])/, (_, first: string) => first.toLowerCase());
    return ![setting, name, name.replace(/s$/, "")].some((each) => options.includes(each));
  });
  // oxfmt-ignore
  expect(others).toEqual([
    "workers", "database", "databaseUrlFile", "deletionsKeptHours", "mcp", "tlsCertFile", "tlsKeyFile", "logLevel",
    "audit", "adminAddress",
  ]);
});
