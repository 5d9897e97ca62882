import { Client, type ClientConfig } from "pg";

/** Servers with a pooled connection, by socket folder, and that connection while it is idle. */
const kept = new Map<string, Client | undefined>();

/** Pools a connection to this server for a test's next SQL. A new one costs PostgreSQL 5 ms. */
export function keepConnection(socketFolder: string): void {
  kept.set(socketFolder, undefined);
}

/** Closes the pooled connection, and stops pooling for this server. */
export async function closeConnection(socketFolder: string): Promise<void> {
  const client = kept.get(socketFolder);
  kept.delete(socketFolder);
  await client?.end();
}

/** Returns the pooled connection, or a new one. */
export async function takeConnection(config: ClientConfig): Promise<Client> {
  const client = takeKept(config);
  try {
    await client?.query(`SET search_path = ${schemaOf(config)}`);
    if (client !== undefined) return client;
  } catch {
    // The server has closed it.
  }
  return await connect(config);
}

/** Resets a connection and returns it to the pool, or closes it. */
export async function giveBackConnection(config: ClientConfig, client: Client): Promise<void> {
  if (!mayBeKept(config)) return await client.end();
  try {
    await client.query("DISCARD ALL");
  } catch {
    // The connection is in a transaction, or the server has closed it.
    return await client.end();
  }
  if (mayBeKept(config)) kept.set(serverOf(config), client);
  else await client.end();
}

async function connect(config: ClientConfig): Promise<Client> {
  const client = new Client(config);
  // Queries report errors themselves, and errors on an idle connection are ignored.
  client.on("error", () => undefined);
  await client.connect();
  return client;
}

function takeKept(config: ClientConfig): Client | undefined {
  const client = schemaOf(config) === undefined ? undefined : kept.get(serverOf(config));
  if (client !== undefined) kept.set(serverOf(config), undefined);
  return client;
}

function mayBeKept(config: ClientConfig): boolean {
  const server = serverOf(config);
  return schemaOf(config) !== undefined && kept.has(server) && kept.get(server) === undefined;
}

const serverOf = ({ host = "" }: ClientConfig): string => host;

/** Returns the schema on a connection that can be pooled, which belongs to the owner and has no other settings. */
function schemaOf({ user, database, options = "" }: ClientConfig): string | undefined {
  if (user !== "tester" || database !== "postgres") return undefined;
  return options === "" ? "DEFAULT" : /^-csearch_path=(\w+)$/.exec(options)?.[1];
}
