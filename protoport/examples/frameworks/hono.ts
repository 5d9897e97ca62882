// The greenhouse in a Hono application: npx node protoport/examples/frameworks/hono.ts 8080
//   curl http://127.0.0.1:8080/sensors/palm/reading
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { gateway } from "../fetch/gateway.ts";

const app = new Hono();

// Before any middleware that reads bodies. Requests that the gateway does not serve continue to the next routes.
app.use(async (context, next) => {
  const continueToRoutes = async (): Promise<Response> => {
    await next();
    return context.res;
  };
  return await gateway.fetch(context.req.raw, { next: continueToRoutes });
});
app.get("/", (context) => context.html("<h1>Greenhouse</h1>\n"));
app.post("/echo", async (context) => context.json(await context.req.json()));

serve({ fetch: app.fetch, hostname: "127.0.0.1", port: Number(process.argv[2] ?? 8080) }, ({ port }) =>
  console.log(`http://127.0.0.1:${String(port)}`),
);
