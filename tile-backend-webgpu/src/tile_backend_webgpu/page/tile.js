// Runs a kernel that tile wrote for the browser:
//
//   import { loadKernel } from './tile.js';
//   const kernel = await loadKernel('./kernel.json');
//   const { C } = await kernel.run({ A, B });
//
// Tensors are typed arrays, row by row: Float32Array for float32, Int8Array for int8 and so on; Uint8Array for bool;
// Float16Array, or Uint16Array with the bits, for float16; Uint16Array with the bits for bfloat16. Where a kernel has symbolic
// dimensions, a tensor is { data, shape }, or the dimensions are given by name among the arguments.
// What the kernel writes comes back, by name, as new arrays; the arrays that were given stay as they are.

const ARRAYS = {
  float32: Float32Array, tfloat32: Float32Array, float16: globalThis.Float16Array ?? Uint16Array, bfloat16: Uint16Array,
  int8: Int8Array, int16: Int16Array, int32: Int32Array,
  uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, bool: Uint8Array,
};
const GRAIN = 16; // bytes: bindings hold whole vectors
const LIMIT = 65535; // maxComputeWorkgroupsPerDimension of every device
const STEP = 256; // bytes from the numbers of one dispatch to the next: minUniformBufferOffsetAlignment

const OPERATIONS = {
  '+': (a, b) => a + b, '-': (a, b) => a - b, '*': (a, b) => a * b,
  '//': (a, b) => Math.floor(a / b), '%': (a, b) => a - Math.floor(a / b) * b,
  truncdiv: (a, b) => Math.trunc(a / b), truncmod: (a, b) => a % b,
  min: Math.min, max: Math.max, '?': (c, a, b) => (c ? a : b),
  '<': (a, b) => a < b, '<=': (a, b) => a <= b, '>': (a, b) => a > b, '>=': (a, b) => a >= b,
  '==': (a, b) => a === b, '!=': (a, b) => a !== b,
};

function evaluate(extent, dims) {
  if (typeof extent === 'number') return extent;
  if (typeof extent === 'string') {
    if (!(extent in dims)) throw new Error(`the dimension ${extent} is not known: pass { data, shape }, or ${extent} itself`);
    return dims[extent];
  }
  const [operation, ...operands] = extent;
  return OPERATIONS[operation](...operands.map((x) => evaluate(x, dims)));
}

const product = (numbers) => numbers.reduce((a, b) => a * b, 1);
const padded = (bytes) => Math.max(GRAIN, Math.ceil(bytes / GRAIN) * GRAIN);

/** The kernel that `source` (an address, or what is found there) describes, on `device` or on one that is asked for. */
export async function loadKernel(source, device = null) {
  const told = typeof source === 'string' ? await (await fetch(source)).json() : source;
  if (told.format !== 1) throw new Error(`kernel.json has format ${told.format}, this loader reads 1`);
  const kernel = new Kernel(told, device ?? (await openDevice(told)));
  await kernel.prepare();
  return kernel;
}

async function openDevice(told) {
  if (!globalThis.navigator?.gpu) throw new Error('this browser has no WebGPU, or the page is not served from a secure origin');
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: 'high-performance' });
  if (!adapter) throw new Error('this browser finds no WebGPU adapter');
  const lacking = told.features.filter((f) => !adapter.features.has(f));
  if (lacking.length) throw new Error(`the kernel uses ${lacking.join(', ')}, which this adapter does not have: export it for webgpu:default`);
  const { subgroupMinSize: least, subgroupMaxSize: most } = adapter.info;
  if (told.subgroup && (least !== told.subgroup || most !== told.subgroup)) {
    throw new Error(`the kernel uses subgroups of ${told.subgroup}, this adapter has ${least} to ${most}: export it for webgpu:default`);
  }
  const requiredLimits = { maxStorageBufferBindingSize: adapter.limits.maxStorageBufferBindingSize, maxBufferSize: adapter.limits.maxBufferSize };
  for (const [name, value] of Object.entries(told.limits)) {
    if (value > adapter.limits[name]) throw new Error(`the kernel needs ${name} ${value}, this adapter has ${adapter.limits[name]}`);
    requiredLimits[name] = value;
  }
  return adapter.requestDevice({ requiredFeatures: told.features, requiredLimits });
}

class Kernel {
  constructor(told, device) {
    Object.assign(this, { told, device, name: told.name, pipelines: [], buffers: new Map() });
    this.tensors = told.params.filter((p) => p.kind === 'tensor');
    this.numbers = told.params.filter((p) => p.kind !== 'tensor');
  }

  async prepare() {
    const { device, told } = this;
    device.pushErrorScope('validation');
    const module = device.createShaderModule({ code: told.code });
    for (const { name, bindings } of told.entries) {
      const types = ['uniform', ...bindings.map(([, how]) => (how === 'read' ? 'read-only-storage' : 'storage'))];
      const entries = types.map((type, binding) => ({
        binding, visibility: GPUShaderStage.COMPUTE, buffer: { type, hasDynamicOffset: binding === 0 },
      }));
      const group = device.createBindGroupLayout({ entries });
      const layout = device.createPipelineLayout({ bindGroupLayouts: [group] });
      const pipeline = device.createComputePipeline({ layout, compute: { module, entryPoint: name } });
      this.pipelines.push({ group, pipeline });
    }
    const error = await device.popErrorScope();
    if (error) throw new Error(`the browser does not take the kernel: ${error.message}`);
  }

  /** Runs the kernel once: arguments by name, results by name. */
  async run(given = {}) {
    const known = new Set(this.told.params.map((p) => p.name));
    for (const name of Object.keys(given)) if (!known.has(name)) throw new Error(`${this.name} has no argument ${name}`);
    const dims = this.dimensions(given);
    const { device } = this;
    device.pushErrorScope('validation');
    const bound = Object.fromEntries(this.tensors.map((p) => [p.name, this.upload(p, given[p.name], dims)]));
    this.told.workspaces.forEach(({ shape, bytes }, n) => {
      const size = product(shape.map((d) => evaluate(d, dims))) * bytes;
      bound[`workspace${n}`] = { buffer: this.buffer(`workspace${n}`, padded(size), GPUBufferUsage.STORAGE) };
    });
    const encoder = device.createCommandEncoder();
    this.dispatch(encoder, bound, dims);
    const back = this.tensors.filter((p) => p.written).map((p) => this.stage(encoder, p, bound[p.name]));
    device.queue.submit([encoder.finish()]);
    const error = await device.popErrorScope();
    if (error) throw new Error(error.message);
    return Object.fromEntries(await Promise.all(back.map((b) => this.take(b))));
  }

  dimensions(given) {
    const dims = {};
    for (const p of this.numbers) if (given[p.name] !== undefined) dims[p.name] = Number(given[p.name]);
    for (const p of this.tensors) {
      const value = given[p.name];
      if (value === undefined || !value.shape) continue;
      if (value.shape.length !== p.shape.length) throw new Error(`${p.name} has ${value.shape.length} dimensions, the kernel takes ${p.shape.length}`);
      p.shape.forEach((extent, n) => { if (typeof extent === 'string') dims[extent] ??= value.shape[n]; });
    }
    for (const p of this.numbers) if (!(p.name in dims)) throw new Error(`the ${p.kind} ${p.name} of ${this.name} is missing`);
    return dims;
  }

  count(p, dims) {
    const shape = p.shape.map((d) => evaluate(d, dims));
    if (!p.strides.length || shape.includes(0)) return product(shape);
    return 1 + shape.reduce((sum, n, k) => sum + (n - 1) * evaluate(p.strides[k], dims), 0);
  }

  upload(p, value, dims) {
    const Type = ARRAYS[p.dtype];
    const count = this.count(p, dims);
    const bytes = count * Type.BYTES_PER_ELEMENT;
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC;
    const buffer = this.buffer(p.name, padded(bytes), usage);
    const data = value?.data ?? value;
    if (data === undefined) {
      if (!p.written) throw new Error(`the argument ${p.name} of ${this.name} is missing`);
      if (!p.output) this.device.queue.writeBuffer(buffer, 0, new Uint8Array(padded(bytes)));
      return { buffer, bytes, Type };
    }
    const fits = data instanceof Type || (p.dtype === 'float16' && data instanceof Uint16Array);
    if (!fits) throw new Error(`${p.name} is ${data?.constructor?.name}, a ${Type.name} is needed for ${p.dtype}`);
    if (data.length !== count) throw new Error(`${p.name} has ${data.length} elements, the kernel takes ${count}`);
    const whole = new Uint8Array(padded(bytes));
    whole.set(new Uint8Array(data.buffer, data.byteOffset, bytes));
    this.device.queue.writeBuffer(buffer, 0, whole);
    return { buffer, bytes, Type: data.constructor };
  }

  /** A buffer of that name and size: that of the last run, or a new one. */
  buffer(name, size, usage) {
    const found = this.buffers.get(name);
    if (found?.size === size) return found;
    found?.destroy();
    const made = this.device.createBuffer({ size, usage });
    this.buffers.set(name, made);
    return made;
  }

  dispatch(encoder, bound, dims) {
    const work = this.told.entries.flatMap(({ grid }, entry) => [...pieces(grid.map((g) => Math.max(0, evaluate(g, dims))), entry)]);
    if (!work.length) return;
    const size = Math.ceil((12 + 4 * this.numbers.length) / GRAIN) * GRAIN;
    if (size > STEP) throw new Error(`${this.name} has too many numbers and dimensions for this loader`);
    const uniforms = this.uniforms(work, dims);
    const pass = encoder.beginComputePass();
    work.forEach(({ entry, first, count }, n) => {
      const { group, pipeline } = this.pipelines[entry];
      const entries = [{ buffer: uniforms, size }, ...this.told.entries[entry].bindings.map(([name]) => ({ buffer: bound[name].buffer }))];
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, this.device.createBindGroup({ layout: group, entries: entries.map((resource, binding) => ({ binding, resource })) }), [n * STEP]);
      pass.dispatchWorkgroups(...count);
    });
    pass.end();
  }

  uniforms(work, dims) {
    const view = new DataView(new ArrayBuffer(work.length * STEP));
    work.forEach(({ first }, n) => {
      first.forEach((block, axis) => view.setUint32(n * STEP + 4 * axis, block, true));
      this.numbers.forEach((p, k) => {
        const at = n * STEP + 12 + 4 * k;
        const set = { f32: 'setFloat32', i32: 'setInt32', u32: 'setUint32' }[this.told.uniforms[k]];
        view[set](at, dims[p.name], true);
      });
    });
    const buffer = this.buffer('uniforms', view.byteLength, GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST);
    this.device.queue.writeBuffer(buffer, 0, view.buffer);
    return buffer;
  }

  stage(encoder, p, { buffer, bytes, Type }) {
    // of its own for each run: several runs may wait for their results at once
    const staging = this.device.createBuffer({ size: padded(bytes), usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
    encoder.copyBufferToBuffer(buffer, 0, staging, 0, padded(bytes));
    return { name: p.name, staging, bytes, Type };
  }

  async take({ name, staging, bytes, Type }) {
    await staging.mapAsync(GPUMapMode.READ);
    const data = new Type(staging.getMappedRange().slice(0, bytes));
    staging.destroy();
    return [name, data];
  }
}

/** The blocks of one launch in pieces that a dispatch can have. */
function* pieces(grid, entry) {
  const full = [...grid, 1, 1, 1].slice(0, 3);
  for (let z = 0; z < full[2]; z += LIMIT) {
    for (let y = 0; y < full[1]; y += LIMIT) {
      for (let x = 0; x < full[0]; x += LIMIT) {
        const first = [x, y, z];
        yield { entry, first, count: full.map((extent, axis) => Math.min(LIMIT, extent - first[axis])) };
      }
    }
  }
}
