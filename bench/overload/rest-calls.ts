import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { benchToken } from "../servers/plants.ts";
import type { OpenCalls, Outcome } from "./open-calls.ts";

/** A connection over HTTP/1.1 with one call at a time. */
interface Connection {
  readonly socket: Socket;
  received: string;
  onOutcome: (kind: Outcome) => void;
}

/** Opens connections for REST, and further connections if there are more concurrent calls. */
export async function openRestCalls(port: number, connectionCount: number = 0): Promise<OpenCalls> {
  const idle: Connection[] = [];
  for (let i = 0; i < connectionCount; i++) idle.push(openConnection(port, idle));
  await Promise.all(idle.map(({ socket }) => once(socket, "connect")));
  return {
    send: (plant, onOutcome) => {
      // The call uses the connection that has been idle for longest, so that all connections are used.
      const connection = idle.shift() ?? openConnection(port, idle);
      connection.onOutcome = onOutcome;
      connection.socket.write(
        `DELETE /plants/${String(plant)} HTTP/1.1\r\nhost: plants\r\nauthorization: Bearer ${benchToken}\r\n\r\n`,
      );
    },
    close: () => {
      for (const { socket } of idle) socket.destroy();
    },
  };
}

function openConnection(port: number, idle: Connection[]): Connection {
  const connection: Connection = { socket: connect(port, "127.0.0.1"), received: "", onOutcome: () => undefined };
  connection.socket.setNoDelay(true).setEncoding("latin1");
  connection.socket.on("data", (text: string) => {
    connection.received += text;
    const header = takeResponse(connection);
    if (header === undefined) return;
    idle.push(connection);
    connection.onOutcome(kindOf(header));
  });
  return connection;
}

/** Returns the header of a complete response, and removes the response from the received bytes. */
function takeResponse(connection: Connection): string | undefined {
  const { received } = connection;
  const headerEnd = received.indexOf("\r\n\r\n");
  const header = received.slice(0, Math.max(0, headerEnd));
  const bodyLength = Number(/content-length: (\d+)/i.exec(header)?.[1] ?? 0);
  if (headerEnd < 0 || received.length < headerEnd + 4 + bodyLength) return undefined;
  connection.received = "";
  return header;
}

function kindOf(header: string): Outcome {
  if (header.startsWith("HTTP/1.1 204")) return "deleted";
  return /^retry-after: \d+$/im.test(header) ? "refused" : "other";
}
