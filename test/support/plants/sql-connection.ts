import { Client, type ClientConfig } from "pg";

/** Servers to which a connection is kept, by the folders of their sockets, and that connection while nothing runs on it. */
const kept = new Map<string, Client | undefined>();

/** Keeps a connection to this server for the next SQL of a test: a new one takes PostgreSQL 5 ms of work. */
export function keepConnection(socketFolder: string): void {
  kept.set(socketFolder, undefined);
}

/** Closes the connection that is kept, and keeps none to this server from now on. */
export async function closeConnection(socketFolder: string): Promise<void> {
  const client = kept.get(socketFolder);
  kept.delete(socketFolder);
  await client?.end();
}

/** Takes the connection that is kept, or a new one. */
export async function takeConnection(config: ClientConfig): Promise<Client> {
  const client = takeKept(config);
  try {
    await client?.query(`SET search_path = ${schemaOf(config)}`);
    if (client !== undefined) return client;
  } catch {
    // The server has ended it.
  }
  return await connect(config);
}

/** Keeps a connection on which SQL has run, with nothing left of that, or closes it. */
export async function giveBackConnection(config: ClientConfig, client: Client): Promise<void> {
  if (!mayBeKept(config)) return await client.end();
  try {
    await client.query("DISCARD ALL");
  } catch {
    // It is in a transaction, or the server has ended it.
    return await client.end();
  }
  if (mayBeKept(config)) kept.set(serverOf(config), client);
  else await client.end();
}

async function connect(config: ClientConfig): Promise<Client> {
  const client = new Client(config);
  // What runs on it is told, and while nothing does there is nobody to tell.
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

function serverOf({ host = "" }: ClientConfig): string {
  return host;
}

/** The schema of a connection that any other may stand in for: one of the owner that has no other settings. */
function schemaOf({ user, database, options = "" }: ClientConfig): string | undefined {
  if (user !== "tester" || database !== "postgres") return undefined;
  return options === "" ? "DEFAULT" : /^-csearch_path=(\w+)$/.exec(options)?.[1];
}
