import { describe, expect, test } from "vitest";
import { openTokenVerifier } from "@protoport/auth";
import { createGateway } from "@protoport/gateway";
import { silentLog } from "@protoport/telemetry/logs";
import { acceptedNames } from "../../../protoport/testing/src/options/unknown-options.ts";
import { flagOf, settings } from "../../../src/server/index.ts";
import { plantServerOptionNames } from "../../../src/server/plant-server-options.ts";

// A setting of the plant store has one name as a variable, a flag and an option. A difference needs a reason here.

/** Functions that refuse an object with an unknown name. The refusal lists the names that exist. */
const functions = {
  listen: (wrong: object) =>
    createGateway({ routes: () => undefined }).listen({ host: "127.0.0.1", port: 0, ...wrong }),
  openTokenVerifier: (wrong: object) => openTokenVerifier(wrong, silentLog),
  jwt: (wrong: object) => openTokenVerifier({ jwt: [{ issuer: "a", audiences: ["b"], ...wrong }] }, silentLog),
  introspection: (wrong: object) =>
    openTokenVerifier({ introspection: { url: "a", clientId: "b", clientSecretFile: "c", ...wrong } }, silentLog),
};

const command = "only the command has it";

const toKebab = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/** Plant store variables whose name differs from that of their setting in code, each with the reason. */
const variableDifferences: Readonly<Record<string, string>> = {
  database: "DATABASE_URL is the name that platforms set",
};

/** Plant store settings that are not options with the same name, each with the reason. */
// oxfmt-ignore
const serverDifferences: Readonly<Record<string, string>> = {
  workers: command, database: "a store in code: `openPlantStore`", databaseUrlFile: "a store in code: `openPlantStore`",
  deletionsKeptHours: "deletionsKeptMs of `openPlantStore`, in the unit of all times in code",
  mcp: "the result of createPlantTools in code: `tools`", tlsCertFile: "a certificate in code: `tls` of `listen`",
  tlsKeyFile: "a key in code: `tls` of `listen`", logLevel: "a logger in code: `log`",
  audit: "a logger in code: `auditLog`", adminAddress: command,
};

describe("a setting", () => {
  test.each(Object.entries(settings).map(([key, setting]) => ({ key, setting })))(
    "$key has the same name as a variable and a flag, except for listed differences",
    ({ key, setting }) => {
      const name = toKebab(key);
      const variable = name.toUpperCase().replaceAll("-", "_");
      const isSame = [variable, `PLANTSTORE_${variable}`].includes(setting.variable);
      expect([key, isSame]).toEqual([key, !(key in variableDifferences)]);
      if (isSame) expect([name, undefined]).toContain(flagOf(setting));
    },
  );

  test.each(Object.keys(settings))(
    "%s names an option for createPlantServer, listen or a token source",
    async (key) => {
      const [, prefix = "", rest = ""] = /^(jwt|introspection)(.+)$/.exec(key) ?? [];
      const name = rest.charAt(0).toLowerCase() + rest.slice(1);
      const ofSource =
        prefix === "" ? [] : await acceptedNames(prefix === "jwt" ? functions.jwt : functions.introspection);
      const others = [
        ...(await acceptedNames(functions.openTokenVerifier)),
        ...(await acceptedNames(functions.listen)),
      ];
      const isSource = ofSource.includes(name) || ofSource.includes(name.replace(/s$/, ""));
      const isOption = isSource || others.includes(key) || key in plantServerOptionNames;
      expect([key, isOption]).toEqual([key, !(key in serverDifferences)]);
    },
  );
});

test.each([
  { what: "variables", differences: variableDifferences },
  { what: "createPlantServer", differences: serverDifferences },
])("every listed difference for $what names an existing setting", ({ differences }) => {
  expect(Object.keys(differences).filter((name) => !(name in settings))).toEqual([]);
});
