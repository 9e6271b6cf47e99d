"""The table of providers: adding one is one row."""

from enum import StrEnum

from msgspec import Struct

from treadle.providers.endpoint import CallIds, Quirks, StreamLimits, ThinkingField


class Wire(StrEnum):
    """The wire APIs."""

    ANTHROPIC_MESSAGES = "anthropic_messages"
    OPENAI_CHAT = "openai_chat"
    OPENAI_RESPONSES = "openai_responses"
    GEMINI = "gemini"
    BEDROCK_CONVERSE = "bedrock_converse"


class Proof(StrEnum):
    """What a provider takes besides a fixed key: requests signed for AWS, or tokens of a Google account."""

    KEY = "key"
    AWS = "aws"
    GOOGLE = "google"


CHAT = Wire.OPENAI_CHAT
_PLAIN = Quirks()
EFFORT = Quirks(thinking=ThinkingField.EFFORT)
SWITCH = Quirks(thinking=ThinkingField.SWITCH)
ENABLE = Quirks(thinking=ThinkingField.ENABLE)
_USUAL = StreamLimits()
_PATIENT = StreamLimits(first_byte=900.0, idle=900.0, progress=3_600.0, reply=43_200.0)
"""A model on the user's own machine may need minutes to load and to read a long prompt."""


class ProviderRow(Struct, frozen=True, kw_only=True):
    """One provider. `keys` are environment variables that may hold its key, the first that is set wins.

    `base_url` may have `{VARIABLES}` of the environment in it, and is empty where the user must give one.
    `models` names the section of the model data, if it is not the provider's name. `search_price` is what a thousand
    searches of the web by the provider cost (US dollars), None if that is not one known figure. `profile` is set where
    the provider is called with the key of a profile, whose name is then a part of the provider's: `anthropic@work`.
    """

    name: str
    title: str
    base_url: str
    keys: tuple[str, ...] = ()
    wire: Wire = CHAT
    quirks: Quirks = _PLAIN
    limits: StreamLimits = _USUAL
    models: str = ""
    aliases: tuple[str, ...] = ()
    key_optional: bool = False
    proof: Proof = Proof.KEY
    search_price: float | None = None
    profile: str = ""

    @property
    def section(self) -> str:
        """The section of the model data."""
        return self.models or self.name


def _row(name: str, title: str, base_url: str, *keys: str, quirks: Quirks = _PLAIN, models: str = "") -> ProviderRow:
    """The common kind: the chat API with a bearer key."""
    return ProviderRow(name=name, title=title, base_url=base_url, keys=keys, quirks=quirks, models=models)


def _local(name: str, title: str, port: int, *keys: str, aliases: tuple[str, ...] = ()) -> ProviderRow:
    """A server on the user's own machine, which may or may not want a key."""
    return ProviderRow(
        name=name,
        title=title,
        base_url=f"http://127.0.0.1:{port}/v1",
        keys=keys,
        key_optional=True,
        limits=_PATIENT,
        aliases=aliases,
    )


ROWS: tuple[ProviderRow, ...] = (
    ProviderRow(
        name="anthropic",
        title="Anthropic",
        base_url="https://api.anthropic.com",
        keys=("ANTHROPIC_API_KEY",),
        wire=Wire.ANTHROPIC_MESSAGES,
        quirks=Quirks(web_search=True),
        aliases=("claude",),
        search_price=10.0,
    ),
    ProviderRow(
        name="openai",
        title="OpenAI",
        base_url="https://api.openai.com/v1",
        keys=("OPENAI_API_KEY",),
        wire=Wire.OPENAI_RESPONSES,
        quirks=Quirks(web_search=True),
        search_price=10.0,
    ),
    ProviderRow(
        name="openai-chat",
        title="OpenAI, chat completions",
        base_url="https://api.openai.com/v1",
        keys=("OPENAI_API_KEY",),
        quirks=Quirks(max_tokens_field="max_completion_tokens", thinking=ThinkingField.EFFORT, call_ids=CallIds.FORTY),
        models="openai",
    ),
    ProviderRow(
        name="gemini",
        title="Google Gemini",
        base_url="https://generativelanguage.googleapis.com/v1beta",
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"),
        wire=Wire.GEMINI,
        quirks=Quirks(web_search=True),
        models="google",
        aliases=("google",),
        search_price=14.0,
    ),
    ProviderRow(
        name="vertex",
        title="Google Vertex AI",
        base_url="https://{VERTEX_HOST}/v1/projects/{GOOGLE_CLOUD_PROJECT}/locations/{GOOGLE_CLOUD_LOCATION}/publishers/google",
        keys=("VERTEX_ACCESS_TOKEN",),
        wire=Wire.GEMINI,
        quirks=Quirks(key_header="authorization"),
        models="google-vertex",
        aliases=("google-vertex",),
        proof=Proof.GOOGLE,
    ),
    ProviderRow(
        name="vertex-anthropic",
        title="Google Vertex AI, Claude",
        base_url="https://{VERTEX_HOST}/v1/projects/{GOOGLE_CLOUD_PROJECT}/locations/{GOOGLE_CLOUD_LOCATION}/publishers/anthropic",
        keys=("VERTEX_ACCESS_TOKEN",),
        wire=Wire.ANTHROPIC_MESSAGES,
        quirks=Quirks(key_header="authorization", model_in_path=True),
        models="google-vertex-anthropic",
        proof=Proof.GOOGLE,
    ),
    ProviderRow(
        name="vertex-openai",
        title="Google Vertex AI, other models",
        base_url="https://{VERTEX_HOST}/v1/projects/{GOOGLE_CLOUD_PROJECT}/locations/{GOOGLE_CLOUD_LOCATION}/endpoints/openapi",
        keys=("VERTEX_ACCESS_TOKEN",),
        models="google-vertex",
        proof=Proof.GOOGLE,
    ),
    ProviderRow(
        name="vertex-express",
        title="Google Vertex AI (API key)",
        base_url="https://aiplatform.googleapis.com/v1/publishers/google",
        keys=("VERTEX_API_KEY", "GOOGLE_API_KEY"),
        wire=Wire.GEMINI,
        models="google-vertex",
    ),
    ProviderRow(
        name="bedrock",
        title="Amazon Bedrock",
        base_url="https://bedrock-runtime.{AWS_REGION}.amazonaws.com",
        keys=("AWS_BEARER_TOKEN_BEDROCK",),
        wire=Wire.BEDROCK_CONVERSE,
        models="amazon-bedrock",
        aliases=("amazon-bedrock",),
        proof=Proof.AWS,
    ),
    ProviderRow(
        name="bedrock-mantle",
        title="Amazon Bedrock, Claude in the Messages API (API key)",
        base_url="https://bedrock-mantle.{AWS_REGION}.api.aws/anthropic",
        keys=("AWS_BEARER_TOKEN_BEDROCK",),
        wire=Wire.ANTHROPIC_MESSAGES,
        models="amazon-bedrock",
    ),
    ProviderRow(
        name="bedrock-openai",
        title="Amazon Bedrock, other models in the Responses API (API key)",
        base_url="https://bedrock-mantle.{AWS_REGION}.api.aws/openai/v1",
        keys=("AWS_BEARER_TOKEN_BEDROCK",),
        wire=Wire.OPENAI_RESPONSES,
        models="amazon-bedrock",
    ),
    ProviderRow(
        name="azure",
        title="Azure OpenAI",
        base_url="https://{AZURE_RESOURCE_NAME}.openai.azure.com/openai/v1",
        keys=("AZURE_API_KEY", "AZURE_OPENAI_API_KEY"),
        wire=Wire.OPENAI_RESPONSES,
        quirks=Quirks(key_header="api-key"),
    ),
    ProviderRow(
        name="azure-foundry",
        title="Azure AI Foundry, other models",
        base_url="https://{AZURE_RESOURCE_NAME}.services.ai.azure.com/openai/v1",
        keys=("AZURE_API_KEY", "AZURE_OPENAI_API_KEY"),
        quirks=Quirks(key_header="api-key"),
        models="azure-cognitive-services",
    ),
    _row(
        "openrouter",
        "OpenRouter",
        "https://openrouter.ai/api/v1",
        "OPENROUTER_API_KEY",
        quirks=Quirks(thinking=ThinkingField.BUDGET, web_search=True, search_tool="openrouter:web_search"),
    ),
    _row("deepseek", "DeepSeek", "https://api.deepseek.com", "DEEPSEEK_API_KEY", quirks=SWITCH),
    _row(
        "mistral",
        "Mistral",
        "https://api.mistral.ai/v1",
        "MISTRAL_API_KEY",
        quirks=Quirks(stream_usage=False, call_ids=CallIds.NINE, user_after_tool=False),
    ),
    _row("xai", "xAI", "https://api.x.ai/v1", "XAI_API_KEY", quirks=EFFORT),
    ProviderRow(
        name="xai-responses",
        title="xAI, Responses API",
        base_url="https://api.x.ai/v1",
        keys=("XAI_API_KEY",),
        wire=Wire.OPENAI_RESPONSES,
        quirks=Quirks(web_search=True, search_bound=False),
        models="xai",
        search_price=5.0,
    ),
    _row("groq", "Groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY", quirks=EFFORT),
    _row("together", "Together AI", "https://api.together.xyz/v1", "TOGETHER_API_KEY", models="togetherai"),
    _row(
        "fireworks", "Fireworks AI", "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY", models="fireworks-ai"
    ),
    _row("cerebras", "Cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY", quirks=EFFORT),
    _row("sambanova", "SambaNova", "https://api.sambanova.ai/v1", "SAMBANOVA_API_KEY"),
    _row("nebius", "Nebius Token Factory", "https://api.tokenfactory.nebius.com/v1", "NEBIUS_API_KEY"),
    _row(
        "moonshot", "Moonshot AI", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY", quirks=SWITCH, models="moonshotai"
    ),
    _row(
        "moonshot-cn",
        "Moonshot AI (China)",
        "https://api.moonshot.cn/v1",
        "MOONSHOT_API_KEY",
        quirks=SWITCH,
        models="moonshotai-cn",
    ),
    ProviderRow(
        name="kimi-coding",
        title="Kimi for Coding",
        base_url="https://api.kimi.com/coding",
        keys=("KIMI_API_KEY",),
        wire=Wire.ANTHROPIC_MESSAGES,
        models="kimi-for-coding",
    ),
    _row("zai", "Z.AI", "https://api.z.ai/api/paas/v4", "ZAI_API_KEY", "ZHIPU_API_KEY", quirks=SWITCH),
    _row(
        "zai-coding",
        "Z.AI coding plan",
        "https://api.z.ai/api/coding/paas/v4",
        "ZAI_API_KEY",
        "ZHIPU_API_KEY",
        quirks=SWITCH,
        models="zai-coding-plan",
    ),
    _row(
        "zhipu",
        "Zhipu AI (China)",
        "https://open.bigmodel.cn/api/paas/v4",
        "ZHIPU_API_KEY",
        quirks=SWITCH,
        models="zhipuai",
    ),
    ProviderRow(
        name="minimax",
        title="MiniMax",
        base_url="https://api.minimax.io/anthropic",
        keys=("MINIMAX_API_KEY",),
        wire=Wire.ANTHROPIC_MESSAGES,
    ),
    ProviderRow(
        name="minimax-cn",
        title="MiniMax (China)",
        base_url="https://api.minimaxi.com/anthropic",
        keys=("MINIMAX_API_KEY",),
        wire=Wire.ANTHROPIC_MESSAGES,
    ),
    _row(
        "qwen",
        "Alibaba Qwen",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        "DASHSCOPE_API_KEY",
        quirks=ENABLE,
        models="alibaba",
    ),
    _row(
        "qwen-cn",
        "Alibaba Qwen (China)",
        "https://dashscope.aliyuncs.com/compatible-mode/v1",
        "DASHSCOPE_API_KEY",
        quirks=ENABLE,
        models="alibaba-cn",
    ),
    _row(
        "doubao",
        "Doubao (Volcano Engine)",
        "https://ark.cn-beijing.volces.com/api/v3",
        "ARK_API_KEY",
        "DOUBAO_API_KEY",
        quirks=SWITCH,
    ),
    _row("huggingface", "Hugging Face", "https://router.huggingface.co/v1", "HF_TOKEN"),
    _row(
        "vercel-ai-gateway",
        "Vercel AI Gateway",
        "https://ai-gateway.vercel.sh/v1",
        "AI_GATEWAY_API_KEY",
        models="vercel",
    ),
    _row("requesty", "Requesty", "https://router.requesty.ai/v1", "REQUESTY_API_KEY", quirks=EFFORT),
    _row("nvidia", "NVIDIA NIM", "https://integrate.api.nvidia.com/v1", "NVIDIA_API_KEY"),
    _row("perplexity", "Perplexity", "https://api.perplexity.ai", "PERPLEXITY_API_KEY"),
    _row("cohere", "Cohere", "https://api.cohere.ai/compatibility/v1", "COHERE_API_KEY", "CO_API_KEY"),
    _row("baseten", "Baseten", "https://inference.baseten.co/v1", "BASETEN_API_KEY"),
    _row("deepinfra", "DeepInfra", "https://api.deepinfra.com/v1/openai", "DEEPINFRA_API_KEY"),
    _row("novita", "Novita AI", "https://api.novita.ai/openai", "NOVITA_API_KEY", models="novita-ai"),
    _row("siliconflow", "SiliconFlow", "https://api.siliconflow.com/v1", "SILICONFLOW_API_KEY", quirks=ENABLE),
    _row(
        "siliconflow-cn",
        "SiliconFlow (China)",
        "https://api.siliconflow.cn/v1",
        "SILICONFLOW_CN_API_KEY",
        "SILICONFLOW_API_KEY",
        quirks=ENABLE,
    ),
    _row("chutes", "Chutes", "https://llm.chutes.ai/v1", "CHUTES_API_KEY"),
    _row("stepfun", "StepFun", "https://api.stepfun.com/v1", "STEPFUN_API_KEY"),
    _row("xiaomi", "Xiaomi MiMo", "https://api.xiaomimimo.com/v1", "XIAOMI_API_KEY", quirks=SWITCH),
    _row("inception", "Inception", "https://api.inceptionlabs.ai/v1", "INCEPTION_API_KEY"),
    _row("upstage", "Upstage", "https://api.upstage.ai/v1", "UPSTAGE_API_KEY"),
    _row("ovhcloud", "OVHcloud", "https://oai.endpoints.kepler.ai.cloud.ovh.net/v1", "OVHCLOUD_API_KEY"),
    _row("scaleway", "Scaleway", "https://api.scaleway.ai/v1", "SCALEWAY_API_KEY"),
    _row("digitalocean", "DigitalOcean", "https://inference.do-ai.run/v1", "DIGITALOCEAN_ACCESS_TOKEN"),
    _row("friendli", "Friendli", "https://api.friendli.ai/serverless/v1", "FRIENDLI_TOKEN"),
    _row("wandb", "Weights & Biases", "https://api.inference.wandb.ai/v1", "WANDB_API_KEY"),
    _row("venice", "Venice", "https://api.venice.ai/api/v1", "VENICE_API_KEY"),
    _row("poe", "Poe", "https://api.poe.com/v1", "POE_API_KEY"),
    _row("synthetic", "Synthetic", "https://api.synthetic.new/openai/v1", "SYNTHETIC_API_KEY"),
    _row("opencode", "OpenCode Zen", "https://opencode.ai/zen/v1", "OPENCODE_API_KEY"),
    _row("helicone", "Helicone", "https://ai-gateway.helicone.ai/v1", "HELICONE_API_KEY"),
    _row("aihubmix", "AIHubMix", "https://aihubmix.com/v1", "AIHUBMIX_API_KEY"),
    _row("modelscope", "ModelScope", "https://api-inference.modelscope.cn/v1", "MODELSCOPE_API_KEY"),
    _row(
        "cloudflare",
        "Cloudflare Workers AI",
        "https://api.cloudflare.com/client/v4/accounts/{CLOUDFLARE_ACCOUNT_ID}/ai/v1",
        "CLOUDFLARE_API_KEY",
        "CLOUDFLARE_API_TOKEN",
        models="cloudflare-workers-ai",
    ),
    _row("databricks", "Databricks", "https://{DATABRICKS_HOST}/serving-endpoints", "DATABRICKS_TOKEN"),
    _row(
        "snowflake",
        "Snowflake Cortex",
        "https://{SNOWFLAKE_ACCOUNT}.snowflakecomputing.com/api/v2/cortex/v1",
        "SNOWFLAKE_PAT",
    ),
    _row("ollama-cloud", "Ollama Cloud", "https://ollama.com/v1", "OLLAMA_API_KEY"),
    _local("litellm", "LiteLLM proxy", 4000, "LITELLM_API_KEY"),
    _local("ollama", "Ollama", 11434),
    _local("lmstudio", "LM Studio", 1234, "LMSTUDIO_API_KEY"),
    _local("llama.cpp", "llama.cpp server", 8080, "LLAMA_CPP_API_KEY", aliases=("llamacpp", "llama-cpp")),
    _local("vllm", "vLLM", 8000, "VLLM_API_KEY"),
    ProviderRow(
        name="openai-compatible",
        title="Any server with the OpenAI chat API",
        base_url="",
        keys=("OPENAI_COMPATIBLE_API_KEY",),
        key_optional=True,
        limits=_PATIENT,
    ),
    ProviderRow(
        name="anthropic-compatible",
        title="Any server with the Anthropic Messages API",
        base_url="",
        keys=("ANTHROPIC_COMPATIBLE_API_KEY",),
        wire=Wire.ANTHROPIC_MESSAGES,
        key_optional=True,
        limits=_PATIENT,
    ),
)
