import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openPlantDatabase } from "../stores/index.ts";
import { issuePlantToken, plantLocationOf, settings, toConnectAddress } from "../server/index.ts";

/** The demo's folder in the working directory. The folder contains the store and the token. */
const folder = ".plantstore";

/** The plants in a new demo store. */
export const demoPlants = { first: 1n, last: 1000n } as const;

/**
 * The settings that a user can change for the demo. The demo overrides all other settings. Otherwise the demo could
 * delete plants in a `DATABASE_URL` that is set for another purpose, or print commands that do not work.
 */
export const demoSettings: readonly (keyof typeof settings)[] = [
  "host",
  "port",
  "logLevel",
  "audit",
  "logProbes",
  "requestIdResponses",
  "adminAddress",
  "corsOrigins",
  "ratePerPrincipal",
  "ratePerAddress",
  "drainDelayMs",
  "drainTimeoutMs",
];

const allowedVariables: ReadonlySet<string> = new Set(demoSettings.map((key) => settings[key].variable));

/** The variables that the demo overrides. */
const overriddenVariables: readonly string[] = Object.values(settings)
  .map(({ variable }) => variable)
  .filter((variable) => !allowedVariables.has(variable));

/** A prepared demo. */
interface Demo {
  readonly token: string;
  /** The environment for `serve`. The settings are similar to a production server's settings. */
  readonly environment: Record<string, string | undefined>;
  /** Variables that the user has set but the demo overrides. */
  readonly ignored: readonly string[];
}

/**
 * Prepares the demo's folder, and the environment for `serve`.
 *
 * @throws Error when the folder or the token file cannot be read or written
 */
export async function prepareDemo(environment: Readonly<Record<string, string | undefined>>): Promise<Demo> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const token = readToken() ?? (await createToken());
  const setVariables = Object.entries(environment).filter(([, value]) => value !== undefined && value !== "");
  // Keeps unknown variables, so that `serve` refuses a misspelt setting.
  const keptVariables = setVariables.filter(([name]) => !overriddenVariables.includes(name));
  return {
    token,
    ignored: overriddenVariables.filter((name) => setVariables.some(([variable]) => variable === name)),
    environment: {
      LOG_LEVEL: "warn",
      // The demo's user does not need a log line per deletion.
      PLANTSTORE_AUDIT: "by-level",
      // A demo needs no drain delay, because it has no load balancer and Ctrl-C should stop it immediately.
      PLANTSTORE_DRAIN_DELAY_MS: "0",
      ...Object.fromEntries(keptVariables),
      DATABASE_URL: `sqlite:${join(folder, "plants.db")}`,
      PLANTSTORE_TOKENS: token,
      PLANTSTORE_DOCS: "open",
      PLANTSTORE_MCP: "on",
    },
  };
}

const tokenFile = join(folder, "token");

function readToken(): string | undefined {
  if (!existsSync(tokenFile)) return undefined;
  // Restricts access to the plain-text token, because a copied folder may have other permissions.
  chmodSync(tokenFile, 0o600);
  const token = readFileSync(tokenFile, "utf8").trim();
  if (token === "") throw new Error(`${tokenFile} is empty; delete it to create a new token`);
  return token;
}

async function createToken(): Promise<string> {
  const issued = await issuePlantToken({ name: "demo", scopes: "-", expiry: "-", file: undefined });
  if (issued.kind === "problems") throw new Error(issued.problems.join(", "));
  // Another demo may have created the token meanwhile.
  const existing = readToken();
  if (existing === undefined) writeFileSync(tokenFile, `${issued.value.token}\n`, { mode: 0o600, flag: "wx" });
  return existing ?? issued.value.token;
}

/** Returns the store's first three plants, for the demo's three commands. */
export async function firstPlants(environment: Demo["environment"]): Promise<readonly bigint[]> {
  await using database = await openPlantDatabase(plantLocationOf(environment["DATABASE_URL"]));
  for await (const ids of database.exportPlants()) return ids.slice(0, 3);
  return [];
}

/**
 * Returns the lines that the demo prints when it listens. The lines contain the credential and commands for a shell.
 *
 * @param plants - existing plants for the commands to delete. With fewer than three plants, commands share a plant
 */
export function demoLines(
  demo: Demo,
  address: { readonly host: string; readonly port: number },
  plants: readonly bigint[],
): string[] {
  const [first = demoPlants.first, second = first, third = second] = plants;
  const authority = toConnectAddress(address);
  const credential = `Authorization: Bearer ${demo.token}`;
  const procedure = "plantstore.v1.PlantService/DeletePlant";
  return [
    `The plant store is listening on http://${authority}. Its plants are in ${join(folder, "plants.db")}; a new store has plants 1 to 1000.`,
    "",
    credential,
    "",
    `In a browser: http://${authority}/docs`,
    `For AI agents, as an MCP server: http://${authority}/mcp`,
    "",
    `curl -i -X DELETE -H '${credential}' http://${authority}/plants/${first}`,
    `grpcurl -plaintext -H '${credential}' -d '{"id":"${second}"}' ${authority} ${procedure}`,
    `${buf} curl --protocol grpc --http2-prior-knowledge --reflect-header '*' -H '${credential}' -d '{"id":"${third}"}' http://${authority}/${procedure}`,
    "",
    plants.length === 0
      ? `All plants are deleted; delete ${folder}/ to start with new ones. Press Ctrl-C to stop.`
      : "Press Ctrl-C to stop.",
  ];
}

// In a checkout, this file is TypeScript, and npx finds buf in the development dependencies.
const buf = import.meta.url.endsWith(".ts") ? "npx buf" : "buf";
