import { connect, createServer } from "node:net";
import { startOnLoopback } from "../../../protoport/testing/src/http/listen-on-loopback.ts";
import type { Dice } from "../../../protoport/testing/src/dice.ts";

/** One in this many pieces of data from the server is lost, together with the connection. */
const piecesPerLoss = 100;
/** A TCP forwarder on a loopback port that loses responses. */
export type LossyLink = AsyncDisposable & { readonly port: number; readonly cuts: number };

export async function startLossyLink(targetPort: number, dice: Dice): Promise<LossyLink> {
  let cuts = 0;
  const server = createServer({ noDelay: true }, (client) => {
    const target = connect({ host: "127.0.0.1", port: targetPort, noDelay: true });
    const close = (): void => {
      client.destroy();
      target.destroy();
    };
    for (const socket of [client, target]) socket.on("error", close).on("close", close);
    client.on("data", (data) => target.write(data));
    target.on("data", (data) => {
      if (dice.roll(piecesPerLoss) > 0) return void client.write(data);
      cuts++;
      close();
    });
  });
  const { address, [Symbol.asyncDispose]: stop } = await startOnLoopback(server);
  return {
    port: address.port,
    get cuts() {
      return cuts;
    },
    [Symbol.asyncDispose]: stop,
  };
}
