import { connect, type Socket } from "node:net";

/** A connection over HTTP/1.1 for one request at a time. */
export interface Http1Connection {
  readonly socket: Socket;
  /** Sends a request. @param onResponse - gets the response's header when the response is complete */
  send(request: string, onResponse: (header: string) => void): void;
}

/** The buffer into which all connections read, so that a response does not allocate memory. */
const readBuffer = Buffer.allocUnsafe(65_536);

/** Opens a connection on loopback, whose first request may be sent immediately. */
export function openHttp1Connection(port: number): Http1Connection {
  let received = "";
  let respond: ((header: string) => void) | undefined;
  const onRead = (bytes: number): boolean => {
    received += readBuffer.toString("latin1", 0, bytes);
    const header = completeHeader(received);
    if (header === undefined) return true;
    received = "";
    respond?.(header);
    return true;
  };
  const socket = connect({ port, host: "127.0.0.1", noDelay: true, onread: { buffer: readBuffer, callback: onRead } });
  return {
    socket,
    send: (request, onResponse) => {
      respond = onResponse;
      socket.write(request, "latin1");
    },
  };
}

/** Returns a response's header, or `undefined` while the response is incomplete. */
function completeHeader(received: string): string | undefined {
  const end = received.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const header = received.slice(0, end);
  const bodyLength = Number(/content-length: (\d+)/i.exec(header)?.[1] ?? 0);
  return received.length < end + 4 + bodyLength ? undefined : header;
}
