import { createServer, type Socket } from "node:net";
import { listen, serve } from "./serve.ts";

// The limit for HTTP/1.1 on node. A socket reads bytes and writes a prepared response, REST's status 204 for DELETE,
// and the empty Connect JSON message for any other method. The server treats each chunk as one request, which only
// works for the bench's load.
const keptOpen = "date: Sat, 21 Nov 2026 12:00:00 GMT\r\nconnection: keep-alive\r\nkeep-alive: timeout=5\r\n\r\n";
const deleted = Buffer.from(`HTTP/1.1 204 No Content\r\n${keptOpen}`);
const emptyMessage = Buffer.from(
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n${keptOpen}{}`,
);
const capitalD = 0x44;

function respond(socket: Socket): void {
  socket.on("data", (request: Buffer) => socket.write(request[0] === capitalD ? deleted : emptyMessage));
  // The load closes its connections at its end.
  socket.on("error", () => socket.destroy());
}

await serve(() => listen(createServer({ noDelay: true }, respond)));
