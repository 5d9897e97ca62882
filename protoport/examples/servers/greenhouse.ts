// The service of these examples, written only for Connect and independent of the server.
import { Code, ConnectError, type ConnectRouter, type ServiceImpl } from "@connectrpc/connect";
import { GreenhouseService } from "../gen/greenhouse/v1/greenhouse_pb.ts";

const degreesBySensor: ReadonlyMap<string, number> = new Map([
  ["door", 12.5],
  ["palm", 21],
]);
const targetDegrees = 20;
const wattsPerDegree = 100;

/** Registers the greenhouse. */
export function routes(router: ConnectRouter): void {
  router.service(GreenhouseService, greenhouse);
}

/** The handlers: RPCs of all four stream types. */
export const greenhouse: ServiceImpl<typeof GreenhouseService> = {
  getReading: ({ sensor }) => ({ sensor, degreesCelsius: degreesOf(sensor) }),

  waterBed: ({ bed, liters, note }, { responseHeader, responseTrailer }) => {
    if (liters > 1000) throw new ConnectError("the tank holds 1000 liters", Code.OutOfRange, { "x-tank": "1000" });
    responseHeader.set("x-bed", String(bed));
    responseTrailer.set("x-left", String(1000 - liters));
    return { bed, liters, note };
  },

  async *watchReadings({ sensor, count }) {
    const degreesCelsius = degreesOf(sensor);
    for (let sent = 0; sent < count; sent += 1) yield { sensor, degreesCelsius };
  },

  async recordReadings(readings) {
    let count = 0;
    let sum = 0;
    for await (const { degreesCelsius } of readings) {
      count += 1;
      sum += degreesCelsius;
    }
    return { count, meanDegreesCelsius: count === 0 ? 0 : sum / count };
  },

  async *controlClimate(readings) {
    for await (const { sensor, degreesCelsius } of readings) {
      yield { sensor, heatWatts: Math.max(0, targetDegrees - degreesCelsius) * wattsPerDegree };
    }
  },
};

function degreesOf(sensor: string): number {
  const degrees = degreesBySensor.get(sensor);
  if (degrees === undefined) throw new ConnectError(`there is no sensor ${JSON.stringify(sensor)}`, Code.NotFound);
  return degrees;
}
