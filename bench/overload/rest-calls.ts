import { once } from "node:events";
import { openHttp1Connection, type Http1Connection } from "../../protoport/bench/load/http1-connection.ts";
import { benchToken } from "../servers/plants.ts";
import type { OpenCalls, Outcome } from "./open-calls.ts";

/** Opens connections for REST, and further connections if there are more concurrent calls. */
export async function openRestCalls(port: number, connectionCount: number = 0): Promise<OpenCalls> {
  const idle: Http1Connection[] = Array.from({ length: connectionCount }, () => openHttp1Connection(port));
  await Promise.all(idle.map(({ socket }) => once(socket, "connect")));
  return {
    send: (plant, onOutcome) => {
      // The call uses the connection that has been idle for longest, so that all connections are used.
      const connection = idle.shift() ?? openHttp1Connection(port);
      const head = `DELETE /plants/${String(plant)} HTTP/1.1\r\nhost: plants\r\nauthorization: Bearer ${benchToken}`;
      connection.send(`${head}\r\n\r\n`, (header) => {
        idle.push(connection);
        onOutcome(kindOf(header));
      });
    },
    close: () => {
      for (const { socket } of idle) socket.destroy();
    },
  };
}

function kindOf(header: string): Outcome {
  if (header.startsWith("HTTP/1.1 204")) return "deleted";
  return /^retry-after: \d+$/im.test(header) ? "refused" : "other";
}
