import { once } from "node:events";
import { connect, type IncomingHttpHeaders } from "node:http2";
import { benchToken } from "../servers/plants.ts";
import type { OpenCalls, Outcome } from "./open-calls.ts";

/** Opens connections for gRPC over cleartext HTTP/2, each with as many concurrent calls as the server accepts. */
export async function openGrpcCalls(port: number, connectionCount: number = 16): Promise<OpenCalls> {
  const sessions = Array.from({ length: connectionCount }, () => connect(`http://127.0.0.1:${String(port)}`));
  await Promise.all(sessions.map((session) => once(session, "connect")));
  let turn = 0;
  return {
    send: (plant, onOutcome) => {
      turn += 1;
      const stream = sessions[turn % connectionCount]?.request(header);
      let fields: IncomingHttpHeaders = {};
      // An error response may consist only of a header, which contains the status.
      stream?.on("response", (response) => (fields = response));
      stream?.on("trailers", (trailer) => (fields = trailer));
      stream?.on("close", () => onOutcome(kindOf(fields)));
      stream?.resume().end(messageOf(plant));
    },
    close: () => {
      for (const session of sessions) session.destroy();
    },
  };
}

const header = {
  ":method": "POST",
  ":path": "/plantstore.v1.PlantService/DeletePlant",
  authorization: `Bearer ${benchToken}`,
  "content-type": "application/grpc+proto",
  te: "trailers",
};

function kindOf(fields: IncomingHttpHeaders): Outcome {
  if (fields["grpc-status"] === "0") return "deleted";
  return fields["grpc-status"] === "8" && /^\d+$/.test(String(fields["grpc-retry-pushback-ms"])) ? "refused" : "other";
}

/** Returns an envelope with DeletePlantRequest{id}, whose field 1 is a varint. */
function messageOf(plant: number): Buffer {
  const varint: number[] = [];
  for (let rest = plant; rest > 0; rest >>>= 7) varint.push((rest & 0x7f) | (rest >= 0x80 ? 0x80 : 0));
  return Buffer.from([0, 0, 0, 0, varint.length + 1, 0x08, ...varint]);
}
