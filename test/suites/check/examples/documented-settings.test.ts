import { createServer, type Server } from "node:http";
import { writeFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { shared } from "../../../../protoport/testing/src/shared.ts";
import { settings } from "../../../../src/server/settings.ts";
import { startConfigured } from "../../../support/server/start-configured.ts";
import { listenOnLoopback } from "@protoport/testing/http";
// oxfmt-ignore
import { createSigningKey, createTempFolder, type IdentityProvider, startIdentityProviderAt
} from "@protoport/testing/process";
import { blocksRunBy } from "../../../support/docs/page-blocks.ts";

// The recipes in docs/how-to/authentication.md with a test provider. Replaces only hosts, by the provider on the
// loopback address, and files, by one with the secret.

const secret = "what the provider knows us by";
const recipes = blocksRunBy("test/suites/check/examples/documented-settings.test.ts");
const known: readonly string[] = Object.values(settings).map(({ variable }) => variable);

/** Returns the variables that lines such as NAME=VALUE set. Throws for unknown settings. */
const readVariables = (block: string): Record<string, string> =>
  Object.fromEntries(
    block.split("\n").map((line) => {
      const [, name = "", value = ""] = /^([A-Z0-9_]+)=(\S+)(?:\s+#.*)?$/.exec(line) ?? [];
      if (!known.includes(name)) throw new Error(`unknown setting: ${line}`);
      return [name, value];
    }),
  );

const pathOf = (url: string | undefined): string => (url === undefined ? "" : new URL(url).pathname);

/** Returns a provider's paths for a recipe. */
async function startProvider(variables: Readonly<Record<string, string>>): Promise<IdentityProvider> {
  const issuer = pathOf(variables["PLANTSTORE_JWT_ISSUERS"]);
  const keys = pathOf(variables["PLANTSTORE_JWT_KEYS_URLS"]) || `${issuer.replace(/\/$/, "")}/keys`;
  return await startIdentityProviderAt({ issuer, keys }, await createSigningKey("RS256", "key"));
}

/** Deletes plant 1 on a server with these variables, and returns the status. */
async function deletePlant(environment: Readonly<Record<string, string>>, token: string): Promise<number> {
  const server = await startConfigured({ LOG_LEVEL: "silent", ...environment });
  try {
    const headers = { connection: "close", authorization: `Bearer ${token}` };
    const response = await fetch(`http://127.0.0.1:${String(server.port)}/plants/1`, { method: "DELETE", headers });
    await response.body?.cancel();
    return response.status;
  } finally {
    await server.drain();
  }
}

const jwtRecipes = recipes.filter(({ text: recipe }) => recipe.includes("PLANTSTORE_JWT_"));

describe.each(jwtRecipes)("the settings at line $line of $page", ({ text: recipe }) => {
  const variables = readVariables(recipe);
  let provider: IdentityProvider;
  let environment: Record<string, string>;
  const audience = variables["PLANTSTORE_JWT_AUDIENCES"];
  const audienceClaim = variables["PLANTSTORE_JWT_AUDIENCE_CLAIM"];
  const forAudience = (value: string | undefined): object =>
    audienceClaim === undefined ? { aud: value } : { aud: undefined, [audienceClaim]: value };
  const enforced = variables["PLANTSTORE_PROVIDER_SCOPES"] === "enforced";
  const scopeClaims = (variables["PLANTSTORE_JWT_SCOPE_CLAIMS"] ?? "scope,scp").split(",");

  beforeAll(async () => {
    provider = await startProvider(variables);
    const { origin } = new URL(provider.issuer);
    const urls = ["PLANTSTORE_JWT_ISSUERS", "PLANTSTORE_JWT_KEYS_URLS"].filter((name) => name in variables);
    const replaced = urls.map((name) => [name, (variables[name] ?? "").replace(/^https:\/\/[^/]+/, origin)]);
    environment = { ...variables, ...Object.fromEntries(replaced) };
  });
  afterAll(() => provider.stop());

  test.each(scopeClaims)("accept a token whose claim %s contains the scope", async (claim) => {
    const token = await provider.sign({ ...forAudience(audience), [claim]: "plants:delete" });
    expect(await deletePlant(environment, token)).toBe(204);
  });

  test("refuse a token for another audience", async () => {
    const token = await provider.sign({ ...forAudience("another"), scope: "plants:delete", scp: "plants:delete" });
    expect(await deletePlant(environment, token)).toBe(400);
  });

  test("require the scope only with PLANTSTORE_PROVIDER_SCOPES=enforced", async () => {
    const token = await provider.sign({ ...forAudience(audience) });
    expect(await deletePlant(environment, token)).toBe(enforced ? 400 : 204);
  });
});

const introspectionRecipes = recipes.filter(({ text: recipe }) => recipe.includes("PLANTSTORE_INTROSPECTION_"));

describe.each(introspectionRecipes)("the settings at line $line of $page", ({ text: recipe }) => {
  const variables = readVariables(recipe);
  const asked: string[] = [];
  let endpoint: Server;
  let environment: Record<string, string>;
  const folder = shared(() => createTempFolder());
  beforeAll(async () => {
    writeFileSync(folder.file("secret"), secret);
    endpoint = createServer((request, response) => {
      void text(request).then((form) => {
        const token = new URLSearchParams(form).get("token") ?? "";
        // In this test, an opaque token's text is its audience.
        asked.push(`${request.url ?? ""} ${request.headers.authorization ?? ""}`);
        response.end(JSON.stringify({ active: true, sub: "ada", aud: token }));
      });
    });
    const origin = await listenOnLoopback(endpoint);
    const name = "PLANTSTORE_INTROSPECTION_URL";
    environment = {
      ...variables,
      [name]: (variables[name] ?? "").replace(/^https:\/\/[^/]+/, origin),
      PLANTSTORE_INTROSPECTION_CLIENT_SECRET_FILE: folder.file("secret"),
    };
  });
  afterAll(() => {
    endpoint.close();
    endpoint.closeAllConnections();
  });

  test("accept an active token, and authenticate with the client secret", async () => {
    expect(await deletePlant(environment, variables["PLANTSTORE_INTROSPECTION_AUDIENCES"] ?? "")).toBe(204);
    const credential = `${variables["PLANTSTORE_INTROSPECTION_CLIENT_ID"] ?? ""}:${secret.replaceAll(" ", "+")}`;
    expect(asked).toEqual([
      `${pathOf(variables["PLANTSTORE_INTROSPECTION_URL"])} Basic ${Buffer.from(credential).toString("base64")}`,
    ]);
  });

  test("refuse a token for another audience", async () => expect(await deletePlant(environment, "another")).toBe(400));
});

test("every recipe on the pages has a test", () =>
  expect([...jwtRecipes, ...introspectionRecipes].length).toBe(recipes.length));
