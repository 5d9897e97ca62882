import { createServer, type Socket } from "node:net";
import { listen, serve } from "./serve.ts";

// The limit for HTTP/1.1 on node. A socket reads bytes and writes a prepared response. The response to DELETE has
// REST's status 204, and the response to any other method is the empty Connect JSON message. The server treats each
// chunk as one request, which only works for the bench's load.
const keptOpen = "date: Sat, 21 Nov 2026 12:00:00 GMT\r\nconnection: keep-alive\r\nkeep-alive: timeout=5\r\n\r\n";
const deleted = Buffer.from(`HTTP/1.1 204 No Content\r\n${keptOpen}`);
const emptyMessage = Buffer.from(
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n${keptOpen}{}`,
);
const capitalD = 0x44;

function respond(socket: Socket): void {
  socket.on("data", (request: Buffer) => socket.write(request[0] === capitalD ? deleted : emptyMessage));
  // When the load ends, it closes its connections.
  socket.on("error", () => socket.destroy());
}

await serve(() => listen(createServer({ noDelay: true }, respond)));
