// The greenhouse with code of ts-proto, on the gateway: npx node protoport/examples/grpc-js/greenhouse-ts-proto.ts 8080
//   curl http://127.0.0.1:8080/sensors/palm/reading
import { status } from "@grpc/grpc-js";
import { createGateway } from "@protoport/gateway";
import { addGrpcJsService } from "@protoport/grpc-handlers/grpc-js";
import { GreenhouseService } from "../gen/greenhouse/v1/greenhouse_pb.ts";
// Generated with outputServices=grpc-js.
import {
  type GreenhouseServiceServer,
  GreenhouseServiceService,
  type Reading,
} from "../gen/grpc-js/greenhouse/v1/greenhouse.ts";

const greenhouse: GreenhouseServiceServer = {
  getReading({ request: { sensor } }, callback) {
    if (sensor === "palm") callback(null, { sensor, degreesCelsius: 21 });
    else callback({ code: status.NOT_FOUND, details: `there is no sensor ${sensor}` });
  },

  waterBed({ request }, callback) {
    callback(null, request);
  },

  watchReadings(call) {
    const { sensor, count } = call.request;
    for (let sent = 0; sent < count; sent += 1) call.write({ sensor, degreesCelsius: 21 });
    call.end();
  },

  recordReadings(call, callback) {
    const degrees: number[] = [];
    call.on("data", ({ degreesCelsius }: Reading) => degrees.push(degreesCelsius));
    call.on("end", () => {
      const count = degrees.length;
      callback(null, { count, meanDegreesCelsius: degrees.reduce((sum, each) => sum + each, 0) / (count || 1) });
    });
  },

  controlClimate(call) {
    call.on("data", ({ sensor, degreesCelsius }: Reading) => {
      call.write({ sensor, heatWatts: Math.max(0, 20 - degreesCelsius) * 100 });
    });
    call.on("end", () => call.end());
  },
};

const gateway = createGateway({
  // The code of ts-proto contains no descriptors.
  routes: (router) =>
    void addGrpcJsService(router, GreenhouseServiceService, greenhouse, { descriptors: [GreenhouseService] }),
});
const { address, port } = await gateway.listen({ host: "127.0.0.1", port: Number(process.argv[2] ?? 8080) });
console.log(`http://${address}:${String(port)}`);
