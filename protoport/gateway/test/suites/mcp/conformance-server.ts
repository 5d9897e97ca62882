import { Code, ConnectError } from "@connectrpc/connect";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGateway, type Gateway } from "../../../src/index.ts";
import { createMcp } from "../../../src/mcp/index.ts";

/** The conformance suite's tools that RPCs can be, by RPC name. */
const names: Readonly<Record<string, string>> = {
  GetReading: "test_simple_text",
  WaterBed: "test_error_handling",
  WatchReadings: "test_tool_with_progress",
};

/** Creates a gateway with the tools that the conformance suite calls. */
export const createConformanceServer = (): Gateway =>
  createGateway({
    routes: (router) => {
      router.service(GreenhouseService, {
        getReading: () => ({ sensor: "This is a simple text response for testing.", degreesCelsius: 21 }),
        waterBed: () => {
          throw new ConnectError("This tool intentionally returns an error for testing", Code.FailedPrecondition);
        },
        async *watchReadings() {
          for (const degreesCelsius of [0, 50, 100]) {
            yield { sensor: "a", degreesCelsius };
            await new Promise((resolve) => setTimeout(resolve, 50));
          }
        },
      });
    },
    mcp: createMcp({
      tools: ({ name }) => {
        const tool = names[name];
        return tool !== undefined && { name: tool };
      },
    }),
  });
