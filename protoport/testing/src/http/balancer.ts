import { get } from "node:http";
import { connect, createServer, type Socket } from "node:net";
import type { Address } from "./exchange.ts";
import { startOnLoopback } from "./listen-on-loopback.ts";

/** A TCP balancer. Dispose it with `await using`. */
export interface Balancer extends AsyncDisposable {
  readonly address: Address;
  /** Returns whether the replica on a port was ready at the last check. */
  isReady(port: number): boolean;
}

/** How often it checks, in ms. A replica continues to serve for ten times as long after it is not ready. */
const checkIntervalMs = 50;

/**
 * Starts a balancer that checks `/readyz` of each replica, forwards new connections to ready replicas in turn, and
 * tries the next one if the connection is refused. The balancer never closes connections by itself.
 */
export async function startBalancer(ports: readonly number[]): Promise<Balancer> {
  const ready = new Set<number>();
  let connections = 0;
  const check = (): void => ports.forEach((port) => checkReady(port, (isReady) => mark(ready, port, isReady)));
  const timer = setInterval(check, checkIntervalMs);
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    connections += 1;
    const first = connections % ports.length;
    const inTurn = [...ports.slice(first), ...ports.slice(0, first)];
    const preferred = inTurn.toSorted((one, other) => Number(ready.has(other)) - Number(ready.has(one)));
    passOn(client, preferred);
  });
  const { address, [Symbol.asyncDispose]: close } = await startOnLoopback(server);
  check();
  return {
    address,
    isReady: (replica) => ready.has(replica),
    [Symbol.asyncDispose]: async () => {
      clearInterval(timer);
      await close();
    },
  };
}

function checkReady(port: number, tell: (isReady: boolean) => void): void {
  const request = get({ host: "127.0.0.1", port, path: "/readyz", agent: false }, (response) => {
    response.resume();
    tell(response.statusCode === 200);
  });
  request.on("error", () => tell(false));
}

function mark(ready: Set<number>, port: number, isReady: boolean): void {
  if (isReady) ready.add(port);
  else ready.delete(port);
}

function passOn(client: Socket, [port, ...others]: readonly number[]): void {
  if (port === undefined) return void client.destroy();
  const replica = connect({ host: "127.0.0.1", port, allowHalfOpen: true, noDelay: true });
  const tryNext = (): void => passOn(client, others);
  replica.once("error", tryNext);
  replica.once("connect", () => {
    replica.off("error", tryNext).on("error", () => client.destroy());
    client.on("error", () => replica.destroy()).on("close", () => replica.destroy());
    replica.on("close", () => client.destroySoon());
    client.pipe(replica).pipe(client);
  });
}
