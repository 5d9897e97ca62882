import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createFetchGateway, type FetchHandler } from "../../../gateway/src/fetch/entry.ts";

/** A greenhouse over Fetch for other runtimes. Does not import test helpers, which require node. */
export const fetch: FetchHandler = createFetchGateway({
  routes: (router) =>
    router.service(GreenhouseService, {
      getReading: ({ sensor }) => ({ sensor, degreesCelsius: 21 }),
      waterBed: ({ bed, liters }) => ({ bed, liters }),
      async *watchReadings({ sensor, count }) {
        for (let at = 0; at < count; at += 1) {
          // The handler waits a turn between messages, so that each message is written separately.
          await new Promise((resolve) => setTimeout(resolve));
          yield { sensor: `${sensor}${String(at)}` };
        }
      },
    }),
  rest: {
    rules: [
      {
        selector: "greenhouse.v1.GreenhouseService.WatchReadings",
        pattern: { case: "get", value: "/sensors/{sensor}/readings" },
      },
    ],
  },
}).fetch;
