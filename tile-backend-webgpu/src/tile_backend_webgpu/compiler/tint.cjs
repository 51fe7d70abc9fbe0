// Reads a list of modules as JSON from the standard input, [{name, code, features, limits}], and lets Tint and Dawn's validation look
// at each and at the pipelines of all its entry points. Writes [{name, errors: [text]}]. Nothing is executed: the adapter
// is Dawn's null backend. The package `webgpu` is found through NODE_PATH or the working directory.
const fs = require('node:fs');
const { pathToFileURL } = require('node:url');

async function opened(gpu, features, limits) {
  const adapter = await gpu.requestAdapter();
  const requiredLimits = {};
  for (const [name, value] of Object.entries(limits)) requiredLimits[name] = Math.min(value, adapter.limits[name]);
  // the null adapter grants the default limits only: what a text needs beyond them is no fault of it if its target grants it
  const more = Object.keys(limits).some((name) => limits[name] > adapter.limits[name]);
  return { device: await adapter.requestDevice({ requiredFeatures: features, requiredLimits }), more };
}

const BEYOND = /larger than the maximum allowed|exceeds the maximum/;

async function errorsOf({ device, more }, code) {
  device.pushErrorScope('validation');
  const module = device.createShaderModule({ code });
  const info = await module.getCompilationInfo();
  const found = info.messages.filter((m) => m.type === 'error').map((m) => `line ${m.lineNum}: ${m.message}`);
  if (!found.length) {
    for (const [, entryPoint] of code.matchAll(/@compute[^{]*?\bfn (\w+)\(/g)) {
      device.createComputePipeline({ layout: 'auto', compute: { module, entryPoint } });
    }
  }
  const error = await device.popErrorScope();
  const judged = error && !found.length && !(more && BEYOND.test(error.message));
  return judged ? [error.message] : found;
}

async function main() {
  const path = require.resolve('webgpu', { paths: [process.cwd(), ...(process.env.NODE_PATH || '').split(':')] });
  const { create, globals } = await import(pathToFileURL(path));
  Object.assign(globalThis, globals);
  const gpu = create(['backend=null', 'enable-dawn-features=allow_unsafe_apis']);
  const devices = new Map();
  const out = [];
  for (const { name, code, features, limits } of JSON.parse(fs.readFileSync(0, 'utf8'))) {
    const key = JSON.stringify([features, limits]);
    if (!devices.has(key)) devices.set(key, await opened(gpu, features, limits));
    out.push({ name, errors: await errorsOf(devices.get(key), code) });
  }
  // devices keep the process alive
  process.stdout.write(JSON.stringify(out), () => process.exit(0));
}

main().catch((error) => {
  fs.writeSync(2, `${error.message}\n`);
  process.exit(1);
});
