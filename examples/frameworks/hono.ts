// The greenhouse in a Hono application: npx node examples/frameworks/hono.ts 8080
//   curl http://127.0.0.1:8080/sensors/palm/reading
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { gateway } from "../fetch/gateway.ts";

const app = new Hono();

// Before whatever reads bodies. What is not the gateway's own goes on to the routes behind it.
app.use(async (context, next) => {
  const goOn = async (): Promise<Response> => {
    await next();
    return context.res;
  };
  return await gateway.fetch(context.req.raw, { next: goOn });
});
app.get("/", (context) => context.html("<h1>Greenhouse</h1>\n"));
app.post("/echo", async (context) => context.json(await context.req.json()));

serve({ fetch: app.fetch, hostname: "127.0.0.1", port: Number(process.argv[2] ?? 8080) }, ({ port }) =>
  console.log(`http://127.0.0.1:${String(port)}`),
);
