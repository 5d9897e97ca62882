import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { issuePlantToken, openPlantDatabase, plantLocationOf, settings } from "../server/index.ts";

/** The folder of the demo in the working directory, with its store and token. */
const folder = ".plantstore";

/** The plants of a new demo store. */
export const demoPlants = { first: 1n, last: 1000n } as const;

/**
 * The settings that a demo takes from its caller. It brings the others itself: it must not delete the plants of a
 * `DATABASE_URL` that is set for another program, and its lines to paste must work.
 */
export const demoSettings: readonly (keyof typeof settings)[] = [
  "host",
  "port",
  "logLevel",
  "audit",
  "probeLines",
  "requestIdAnswers",
  "adminAddress",
  "corsOrigins",
  "ratePerPrincipal",
  "ratePerAddress",
  "drainDelayMs",
  "drainTimeoutMs",
];

const takenVariables: ReadonlySet<string> = new Set(demoSettings.map((key) => settings[key].variable));

/** The variables of the settings that the demo brings itself. */
const broughtVariables: readonly string[] = Object.values(settings)
  .map(({ variable }) => variable)
  .filter((variable) => !takenVariables.has(variable));

/** A prepared demo. Dispose of it with `using`. */
export interface Demo extends Disposable {
  readonly token: string;
  /** An environment like that of a production server. */
  readonly environment: Record<string, string | undefined>;
  /** The variables of settings that are set and not taken. */
  readonly ignored: readonly string[];
}

/**
 * Prepares the folder of the demo, and the environment that turns `serve` into the demo.
 *
 * @throws Error when another demo uses the folder, or the folder or the token file cannot be read or written
 */
export async function prepareDemo(environment: Readonly<Record<string, string | undefined>>): Promise<Demo> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const lock = await lockFolder();
  const token = readToken() ?? (await makeToken());
  const given = Object.entries(environment).filter(([, value]) => value !== undefined && value !== "");
  // Also what is no setting, so that a misspelt one is refused.
  const kept = given.filter(([name]) => !broughtVariables.includes(name));
  return {
    [Symbol.dispose]: () => lock[Symbol.dispose](),
    token,
    ignored: broughtVariables.filter((name) => given.some(([set]) => set === name)),
    environment: {
      LOG_LEVEL: "warn",
      // A person reads the log, and need not see every deletion.
      PLANTSTORE_AUDIT: "by-level",
      // There is no load balancer in front of a demo, and Ctrl-C should end it at once.
      PLANTSTORE_DRAIN_DELAY_MS: "0",
      ...Object.fromEntries(kept),
      DATABASE_URL: `sqlite:${join(folder, "plants.db")}`,
      PLANTSTORE_TOKENS: token,
      PLANTSTORE_DOCS: "open",
    },
  };
}

// A lock of SQLite, because the system releases it however a process ends.
async function lockFolder(): Promise<Disposable> {
  const { DatabaseSync } = await import("node:sqlite");
  const lock = new DatabaseSync(join(folder, "lock"), { timeout: 0 });
  try {
    lock.exec("BEGIN EXCLUSIVE");
    return lock;
  } catch (reason) {
    if (!(reason instanceof Error && "errcode" in reason && reason.errcode === sqliteBusy)) throw reason;
    throw new Error(`another demo is using ${folder}/; stop it, or run this one in another folder`, { cause: reason });
  }
}

/** SQLITE_BUSY (sqlite.org/rescode.html): another connection has the lock. */
const sqliteBusy = 5;

const tokenFile = join(folder, "token");

function readToken(): string | undefined {
  if (!existsSync(tokenFile)) return undefined;
  // Somebody may have copied the folder, and the token in it is plain text.
  chmodSync(tokenFile, 0o600);
  const token = readFileSync(tokenFile, "utf8").trim();
  if (token === "") throw new Error(`${tokenFile} is empty; delete it to create a new token`);
  return token;
}

async function makeToken(): Promise<string> {
  const issued = await issuePlantToken({ name: "demo", scopes: "-", expiry: "-", file: undefined });
  if (issued.kind === "problems") throw new Error(issued.problems.join(", "));
  writeFileSync(tokenFile, `${issued.value.token}\n`, { mode: 0o600, flag: "wx" });
  return issued.value.token;
}

/** Returns the first plants that a store still has, one for each command that the demo prints. */
export async function firstPlants(environment: Demo["environment"]): Promise<readonly bigint[]> {
  await using database = await openPlantDatabase(plantLocationOf(environment["DATABASE_URL"]));
  for await (const ids of database.exportPlants()) return ids.slice(0, 3);
  return [];
}

/**
 * Returns what the demo prints once it listens: the credential, and commands to paste into a shell.
 *
 * @param plants - plants that exist, for the commands to delete; if there are too few, a command names one that is gone
 */
export function demoLines(
  demo: Demo,
  address: { readonly host: string; readonly port: number },
  plants: readonly bigint[],
): string[] {
  const [first = demoPlants.first, second = first, third = second] = plants;
  const authority = `${hostToCall(address.host)}:${address.port}`;
  const credential = `Authorization: Bearer ${demo.token}`;
  const procedure = "plantstore.v1.PlantService/DeletePlant";
  return [
    `The plant store is listening on http://${authority}. Its plants are in ${join(folder, "plants.db")}; a new store has plants 1 to 1000.`,
    "",
    credential,
    "",
    `In a browser: http://${authority}/docs`,
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

// One can listen on an address that stands for all addresses, but not connect to it.
function hostToCall(host: string): string {
  if (host === "0.0.0.0" || host === "::") return "localhost";
  return host.includes(":") ? `[${host}]` : host;
}

// In a checkout this file is TypeScript, and buf is one of the development tools.
const buf = import.meta.url.endsWith(".ts") ? "npx buf" : "buf";
