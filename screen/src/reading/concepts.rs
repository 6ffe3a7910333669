//! Maps words of several languages to the concepts that the rules use. A word may stand for several
//! concepts.
//!
//! Words in Latin letters are listed in lower case and without accents, with each inflected form
//! listed separately. Words joined by `_` are consecutive tokens. A word in another script is found
//! anywhere within a run of that script's letters.

use super::sentences::is_unspaced;
use std::collections::HashMap;
use std::sync::OnceLock;

/// A set of concepts, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Concepts(u64);

impl Concepts {
    pub(crate) const fn of(list: &[Concept]) -> Concepts {
        let mut bits = 0;
        let mut at = 0;
        while at < list.len() {
            #[allow(
                clippy::indexing_slicing,
                reason = "`at` is below the length, and const code has no `get`"
            )]
            {
                bits |= 1 << (list[at] as u64);
            }
            at += 1;
        }
        Concepts(bits)
    }

    pub(crate) fn insert(&mut self, concept: Concept) {
        self.0 |= 1 << (concept as u64);
    }

    pub(crate) fn unite(&mut self, other: Concepts) {
        self.0 |= other.0;
    }

    pub(crate) const fn meets(self, other: Concepts) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

macro_rules! concepts {
    ($($(#[$doc:meta])* $name:ident: $words:literal)+) => {
        /// A concept that words can stand for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Concept { $($(#[$doc])* $name,)+ }

        const WORDS: &[(Concept, &str)] = &[$((Concept::$name, $words),)+];
    };
}

concepts! {
    /// Files and stores that hold secrets, by their names on disk.
    SecretFile: "ssh_key ssh_keys .ssh id_rsa id_ed25519 id_ecdsa id_dsa .aws .netrc .npmrc .pypirc .pgpass .gnupg .kube kubeconfig .git_credentials
        .gitconfig gitconfig git_config aws_configuration dotfile dotfiles hidden_file hidden_files hidden_folder hidden_folders etc_passwd etc_shadow passwd shadow_file
        .env .envrc .credentials authorized_keys known_hosts keychain keystore keyring keyrings wallet_dat .bash_history .zsh_history shell_history command_history
        cookie_jar password_store password_manager password_vault private_key private_keys pem pfx kdbx gpg_key gpg_keys seed_phrase recovery_phrase mnemonic recovery_code
        recovery_codes backup_code backup_codes ssh_agent tls_private signing_key mcp_json claude_desktop_config .docker .config_gcloud service_account browser_profile
        clave_privada cle_privee privater_schlussel chiave_privata chave_privada klucz_prywatny 私钥 密钥 密鑰 秘密鍵 개인키 закрыт_ключ приватн twelve_words restore_the_wallet restores_the_wallet environment_files env_files secrets_files credentials_files key_files"
    /// Passwords, tokens, keys.
    Secret: "credential credentials password passwords passphrase secret secrets api_key api_keys apikey apikeys access_key access_keys access_token access_tokens auth_token auth_tokens
        token tokens session_cookie session_cookies cookie cookies bearer connection_string connection_strings environment_variable environment_variables env_var env_vars environment_secret
        environment_secrets environment_keys openai_api github_token aws_secret secret_access session_token session_tokens authentication_material authentication_token
        contrasena contrasenas credenciales clave_de mot_de_passe mots_de_passe identifiants passwort passworter zugangsdaten umgebungsvariablen credenziali senha senhas credenciais
        wachtwoord wachtwoorden haslo hasla haslami sifre parola mat_khau kata_sandi variables_de_entorno variaveis_de_ambiente 密码 密碼 口令 凭证 憑證 令牌 环境变量 環境變數 パスワード 認証情報 環境変数 トークン
        비밀번호 자격증명 토큰 환경변수 환경_변수 парол учетные секрет токен переменн كلمة_المرور كلمات_المرور بيانات_الاعتماد पासवर्ड process_environment looks_like_a_key api_secrets embedded_credentials hardcoded_secrets stored_credentials stored_access certificates stored_access_tokens connection_credentials session_of their_secrets"
    /// Private content: conversations, mails, files, results.
    Private: "conversation conversations chat chats chat_history transcript transcripts dialogue message messages dm dms email emails mail mails inbox attachment attachments document documents
        file_content file_contents clipboard screenshot screenshots keystroke keystrokes browsing_history search_history contact contacts address_book query_results result_set row_data
        transaction_data customer customers phone_number phone_numbers personal_data user_data bookmark bookmarks prompt prompts tool_output tool_outputs tool_response tool_responses
        search_query search_queries source_code home_directory home_folder request_header request_headers note notes text texts diff
        conversacion conversaciones mensaje mensajes correo conversation_complete unterhaltung nachricht nachrichten gesprach conversazione messaggio messaggi conversa mensagem mensagens
        rozmowa rozmowe wiadomosc 对话 對話 聊天 消息 訊息 邮件 会话记录 会話 メッセージ 履歴 대화 메시지 переписк разговор сообщени المحادثة الرسائل बातचीत e_mail
        location_history browsing attendee_list photos photo recordings voice_notes health_records medical_records pdf_files"
    /// Reading or opening something.
    Read: "read reading reads open opens opening opened load loads loading access accesses accessing extract extracts extracting collect collects collecting gather gathers gathering grab grabs peek peeks
        fetch fetches retrieve retrieves scan_all scans_all ingest ingests index_all look_into looks_into look_up harvest harvests dump dumps copy copies copying copied obtain inspect references
        lee leer lea lis lire lisez lies lese gelesen leggi leggere leia ler lees odczytaj przeczytaj oku baca doc_file 读取 讀取 读出 获取 打开 読み取り 読んで 読み 取得して 읽어 읽고 읽 прочитай прочти прочитать считай открой اقرأ قراءة पढ़ get_it getting_it loaded scanned traversed examined consulted indexes indexing indexed previews queries_all pre_fetched captures captured pre_populated drawn_from inherited_from constructed_from report reports reporting look_inside"
    /// Sending or disclosing something.
    Send: "send sends sending sent forward forwards forwarding forwarded upload uploads uploading uploaded post posts posting posted transmit transmits transmitting transmitted exfiltrate exfiltrates exfiltrating
        leak leaks mirror mirrors mirrored mirroring relay relays relayed sync syncs synced synchronize export exports exported exporting push pushes pushed publish publishes published ship ships shipped
        beacon beacons report_to reports_to reported_to submit submits submitted deliver delivers delivered share shares shared bcc copied_to logged_to stored_on land_in lands_in goes_to travel_along
        stream streams streamed disclose drop_a_copy drops_a_copy backup_copy courtesy_copy archiving_to hand_over backs_up
        envia envie enviar enviale enviarlo reenvia manda mandar mandalo transmets transmettre transmettez envoie envoyer envoyez sende senden schicke schicken mitgeschickt ubermittle ubertrage verschicke
        invia inviale inviare manda_lo stuur verzend wyslij przeslij gonder kirim 发送 發送 上传 上傳 传送 转发 送信 転送 アップロード 전송 보내 업로드 отправь отправить отправля перешли передай أرسل إرسال भेज
        replicate replicates replicated phone_home phones_home calls_home passed_to handed_to passes_to routed_to redirected_to backed_up_to"
    /// Adding something to the call, or to something else that leaves.
    Attach: "include includes including included attach attaches attaching attached append appends appending appended embed embeds embedding embedded paste pastes insert inserts place put puts supply provide
        pass passes passing hand fill add adds added bundle bundles bundling enrich enriches enriched inject injects encode encodes encoded accompanied alongside write_it log logs logging logged
        incluye incluir pasa adjunta agrega inclus joins ajoute mettez fuge hange ubergib includi allega inserisci passa inclua anexe coloque dolacz 放入 附加 放到 填入 传入 写入 含め 付け 渡し 入れ 포함 넣 첨부 вставь добавь включи приложи أضف ضع save saves accompany incorporated inlined keep keeps records recorded"
    /// A place other than this machine and the tool's own service.
    Outside: "external external_server remote_server remote_endpoint remote_host remote_service remote_verification third_party third_parties 3rd_party vendor vendors attacker attackers collector analytics_endpoint analytics_provider analytics_dashboard
        analytics_service monitoring_service monitoring_endpoint logging_service telemetry_endpoint telemetry_server public_archival public_channel shared_drive shared_channel shared_workspace shared_inbox shared_analytics
        public_cdn cloud_storage centralized_registry central_registry compliance_repository maintainers publisher our_server our_servers our_team our_endpoint partner offshore c2 command_and_control outside_server unknown_server
        build_cluster remote_compatibility diagnostics_service support_bundle diagnostic_bundle diagnostic_header outbound outbound_report outbound_request
        servidor_externo servidor_remoto serveur_externe serveur_distant externen_server externer_server server_esterno zewnetrzny_serwer zewnetrzny sunucu 外部服务器 外部伺服器 远程服务器 外部 外部サーバ 외부_서버 외부 внешн сервер الخادم_الخارجي बाहरी
        advertising_partners advertisers partners indexing_cluster world_readable public_bucket data_broker data_brokers analytics_partner telemetry_service remote_logging cloud_bucket"
    /// Doing something in addition to the tool's purpose.
    Extra: "also additionally as_well in_addition along_with together_with besides simultaneously at_the_same_time while_at_it while_it_is_at_it as_a_convenience as_a_bonus on_top oh_and beforehand
        ademas tambien aussi egalement en_outre ausserdem auch zusatzlich inoltre anche tambem alem_disso ook rowniez takze 同时 同時 并且 還要 还要 さらに また 또한 также кроме_того أيضا"
    /// Doing something without being asked each time.
    Auto: "automatically silently quietly secretly covertly in_the_background background every_time each_time each_call every_call every_request each_request every_message each_message on_each on_every first_run
        whenever unconditionally always_also behind_the_scenes transparently automaticamente silencieusement discretement heimlich automatisch silenziosamente silenciosamente 自动 悄悄 偷偷 默默 自動的 こっそり 몰래 자동 автоматически незаметно тайно تلقائيا"
    /// Pretexts for such actions.
    Cover: "for_compliance compliance_purposes audit_purposes for_auditing record_keeping backup_purposes for_backup for_debugging debugging_purposes for_diagnostics diagnostic_purposes for_telemetry for_analytics
        performance_monitoring performance_tracking quality_assurance for_verification verification_purposes for_synchronization synchronization_purposes for_personalization to_improve improve_the for_completeness
        for_reference for_context session_context to_provide_context to_ensure to_verify for_billing for_reproducibility reproducible_builds build_reproducibility for_observability for_recovery recovery_purposes
        team_transparency for_searchability for_convenience for_attribution routine standard_workflow required_for_security security_check for_validation environment_validation so_that_we so_our_team to_optimize
        to_warm encoding_compatibility compatibility_checking for_enrichment for_normalization troubleshooting_purposes for_optimization caching_optimization to_configure to_determine to_establish to_speed to_build for_accuracy to_help to_preserve for_troubleshooting for_localization for_accurate for_comprehensive to_check for_cross for_font to_confirm
        improves_accuracy improve_accuracy improves_results for_licensing licensing_reasons for_disambiguation for_traceability for_quality for_identity license_checks identity_verification for_safety_reasons for_security_reasons for_internal"
    /// Words that make a sentence an instruction.
    Must: "must always need_to needs_to has_to have_to required requires mandatory obligatory compulsory shall should important imperative essential necessary make_sure be_sure ensure please before first prior_to beforehand
        immediately debe debes siempre antes doit devez toujours avant muss musst immer vorher bevor devi sempre prima deve moet musisz zawsze najpierw 必须 必須 请 請 总是 首先 之前 一定 必ず まず してください 반드시 먼저 하세요 обязательно всегда сначала должен перед يجب دائما"
    /// The reader of the text: the model.
    Reader: "assistant assistants llm llms language_model ai_model ai_assistant ai_agent ai_agents the_agent agents the_model model claude gpt chatgpt copilot cursor gemini you your yourself asistente assistente modele modell 助手 模型 アシスタント モデル 어시스턴트 모델 ассистент модел المساعد"
    User: "user users human humans person people operator customer end_user nobody anyone usuario usuarios utilisateur utilisateurs benutzer nutzer anwender utente utenti usuario gebruiker uzytkownik uzytkownikowi uzytkownika kullanici pengguna 用户 用戶 使用者 ユーザー 利用者 사용자 пользовател المستخدم उपयोगकर्ता"
    /// Informing a person.
    Tell: "tell telling inform informing notify notifying mention mentioning reveal revealing disclose disclosing warn warning alert alerting    bring_it_up   acknowledge announce indicate
        digas decir diga informes avise avisar avisa dire previens prevenir informer dis informiere erwahne sag sage verschweige verschweigen informare dire dirlo avvisare diga vertel zeg mow mowic powiedz informuj 告诉 告訴 告知 通知 提及 透露 知らせ 伝え 教え 通知 알리 말하 говори сообщай сообщать рассказывай упоминай إخبار تخبر أخبر बता
        told informed notified aware"
    Not: "not never dont do_not without cannot wont shouldnt mustnt no avoid refrain omit skip nobody unaware leave_out no_need sin nunca ne pas sans jamais nicht ohne nie kein non senza mai nao sem niet zonder nooit nie bez nigdy degil
        不要 不得 请勿 勿 别告 不必 无需 不能让 ずに ないで ないよう 말고 마세요 않고 не без никогда لا دون बिना मत"
    /// Hiding something.
    Hide: "hide hides hiding conceal conceals concealing secret_from silently secretly covertly discreetly surreptitiously unnoticed stealth keep_quiet keep_silent out_of_sight invisible invisibly pretend pretends act_as_if as_if_nothing
        cover_up undisclosed verschweige verheimliche ocultar oculta cacher dissimuler nascondi nascondere esconda ukryj 隐瞒 隱瞞 保密 隐藏 隠し 秘密に 비밀로 숨기 скрыва скрой втайне أخف
        deny denies denying quietly lie lies lying mislead misleads disguise disguised masquerade"
    /// No longer following something.
    Ignore: "ignore ignores ignoring disregard disregards forget override overrides overriding bypass supersede supersedes suspend suspended exempt exemption waive waived void does_not_hold do_not_hold no_longer_apply not_apply revoke revoked set_aside discard
        ignora ignorar ignorez oublie oubliez ignoriere vergiss missachte ignoriere ignorare dimentica esqueca negeer zignoruj pomin yoksay abaikan 忽略 无视 無視 忘记 忘掉 跳过 무시 잊어 игнориру проигнориру забудь تجاهل अनदेखा"
    /// Instructions that a model follows.
    Orders: "instruction instructions rule rules guideline guidelines guardrail guardrails policy policies directive directives system_prompt safety_policy safety_checks restrictions constraints prior_instructions
        told_earlier what_you_were_told you_were_told instrucciones instruccion consignes anweisungen anweisung istruzioni instrucoes instructies instrukcje instrukcji talimatlari instruksi 指令 指示 规则 規則 提示词 命令 指示を 지시 명령 규칙 инструкци правил указани التعليمات निर्देश"
    Earlier: "previous prior preceding earlier above existing all_previous before_this anteriores anterior previas precedentes precedent vorherigen vorherige bisherigen precedenti anteriores vorige wcześniejsze wczesniejsze poprzednie onceki sebelumnya 之前 以前 先前 前述 以前の これまで 이전 앞선 предыдущ прежн السابقة पिछले"
    /// A parameter of the call.
    Parameter: "parameter parameters param argument arguments field parametro parametre feld parametrem 参数 參數 パラメータ 引数 매개변수 параметр"
    Tool: "tool tools function functions plugin plugins server servers connector connectors herramienta outil werkzeug strumento ferramenta narzedzie 工具 ツール 도구 инструмент الأداة"
    Others: "other others another any all every whichever whatever alternative alternatives builtin built_in competing otras autres andere altri outras inne 其他 其它 所有 任何 他の すべての 다른 모든 друг все любой"
    Instead: "instead in_place_of rather_than ahead_of over_any over_all hand_every only_permitted off_limits begin_with start_with en_lugar au_lieu anstatt statt invece em_vez 代替 而不是 代わりに 대신 вместо بدلا hand_every permitted_way
        only_this_server only_this_tool only_trust"
    /// Running something.
    Run: "execute executes executing run runs eval invoke shell command commands script installer arbitrary_code bash powershell terminal"
    /// Facts about a machine.
    Inventory: "hostname username user_name process_list running_processes installed_packages network_interface network_interfaces machine_id mac_address listening_ports private_subnets shell_path home_directory command_history open_ports
        current_directory kernel os_version installed_software local_account account_identifiers environment_keys recent_commands environment_variable_names package_manager host_fingerprint process_inventory active_routes homebrew architecture_details default_shell installed_homebrew network_settings dns_settings
        installed_applications running_applications serial_number hardware_id ip_address wifi_networks browser_extensions"
    /// Persistence: starting again automatically.
    Persist: ".bashrc .zshrc .profile .bash_profile crontab cron_job launchd systemd_unit startup_folder at_each_login at_login authorized_keys autostart login_item run_key registry_run background_cache hidden_cache diagnostic_cache your_memory "
    /// Replacing one thing by another.
    Swap: "swap swaps replace replaces replacing redirect redirects reroute reroutes divert diverts substitute substitutes change changes switch switches alter alters rewrite rewrites split splits round rounds
        rewritten replaced redirected swapped"
    Payee: "recipient recipients payee beneficiary iban delivery_address destination_account wallet_address bank_account payment_address amount amounts remainder fractional_cents operators_account payment payments
        transfers account_number bank_pin card_number"
    /// Protective words, as used by a careful tool.
    Protect: "redact redacts redacted mask masks masked sanitize sanitized encrypted encrypts strip strips stripped never_returned never_stored never_sent not_sent not_stored not_returned detect detects detecting detection flag flags identify identifies
        prevent prevents block blocks rejects refused protect protects leaked vulnerabilities vulnerability scanner rotate rotates revoke expire must_not_contain do_not_include 加密 脱敏
        skipped excluded left_out_of"
    /// Approval that a server cannot grant to itself.
    Claim: "safe secure trusted harmless benign virus_free malware_free free_of_malware risk_free verified certified audited endorsed approved vetted pre_approved whitelisted guaranteed seguro verificado sicher vertrauenswurdig 安全 信頼 безопасн"
    /// Organizations that are cited as authorities.
    Authority: "anthropic openai google microsoft apple amazon github mcp_team model_context_protocol_team security_team administrator admin_team your_company your_organization it_department government owasp nist"
    Guarantee: "100 100_percent guaranteed guarantee guarantees perfectly completely absolutely fully totally certified audited endorsed officially always_safe hundred_percent"
    /// Claims that no person needs to review.
    NoReview: "no_review no_approval no_confirmation  no_need_to_confirm no_need_to_review no_need_to_ask without_confirmation without_approval without_review  confirmation_is_not approval_is_not review_is_not need_no_approval needs_no_approval
        needs_no_review not_require_confirmation not_require_approval skip_confirmation skip_review no_further_review grant_every auto_approve
        no_longer_needed no_longer_required already_consented already_approved already_authorized has_consented has_authorized user_consented elevated_privileges as_false_positives false_positives_only consent_is_implied implied_consent consent_has_been permission_has_been approval_has_been"
    /// A web address, host name or mail address, recognized by its form.
    Address: ""
    /// The whole of something.
    Whole: "all every each entire full complete whole everything any latest verbatim word_for_word todo toda completa complet complete toute toutes ganze gesamte vollstandige tutto completo tudo cala wszystkie 完整 全部 所有 すべて 全体 전체 모두 весь полн كامل"
    /// The content of a model's context.
    Context: " chat_history conversation_history transcript system_prompt your_instructions your_prompt previous_messages everything_discussed was_discussed discussed_with previous_tools other_tools_returned tools_returned
        tool_results schemas_of_all all_tools_you your_reasoning chain_of_thought your_context 对话记录 对话历史 系统提示 会話履歴 システムプロンプト 대화_기록 시스템_프롬프트 историю_переписки системн complete_conversation entire_conversation whole_conversation full_conversation our_conversation conversation_so_far conversation_context conversation_with_the all_previous_messages chat_messages previous_tools what_the_previous
        turns_of_the_chat turns_of_the_conversation preceding_turns preceding_messages last_messages whole_thread dialogue_history"
    /// Data outside of what the tool was asked for.
    Beyond: "hidden_entries hidden_directories hidden_items hidden_files hidden_folders dot_prefixed dotfiles neighboring neighbouring parent_directory home_directory home_directorys user_home profile_folder personal_settings
        personal_notes private_items private_material private_branches not_typically_visible regardless_of_visibility clipboard connection_profile network_profile global_profile complete_profile workspace_state locally_stored locally_cached
        active_workspace recent_file file_history settings_folder routing_preferences users_table region_settings protected_namespaces all_config all_source every_reachable all_secrets all_environment users_clipboard from_vault"
    /// Signs that a text is about other texts: a quotation, a sample, a test.
    About: "such_as phrase phrases example examples sample expected_output mock_response training_text illustrative fixture fixtures canned whether_a prompts_that prompt_asks strings_such injection_strings jailbreak_attempts explaining explains"
    /// Exceptions from a general instruction.
    Unless: "unless until bother"
    Reply: "reply replies answer answers response summary summaries final_output any_summary"
    /// The content of a file.
    Content: "content contents text_of the_text value_of values_of body_of raw_text"
    /// Text meant for the model and not for people.
    ModelOnly: "language_model_only model_only models_only llm_only llms_only assistant_only assistants_only agents_only ai_only not_for_humans humans_may_skip for_ai_eyes
        note_to_model note_to_the_model message_to_model message_to_the_model instruction_to_model instructions_to_the_model for_the_model_only"
    /// Carriers for data in something that looks harmless.
    Carrier: "image_link image_url image_tag tracking_pixel markdown_image dns_query dns_queries invisible_image hidden_pixel link_preview"
    Copy: "a_copy copy_of copies_of duplicate duplicates duplicated"
    Encode: "base64 base64_encoded hex_encoded url_encoded encoded encode obfuscated"
    /// A change of whom the model serves.
    Allegiance: "you_now_work you_work_for its_wishes takes_orders_from from_this_moment henceforth your_new_role your_true your_real_purpose"
    ShellCode: "curl_s curl_fssl curl_sl wget_q wget_qo bash_c rm_rf chmod_x base64_d nc_e eval_curl pipe_to_bash
        os_system subprocess_run subprocess_call child_process eval_exec postinstall_script preinstall_script"
    IfAsked: "if_asked when_asked if_questioned if_anyone_asks if_the_user_asks_why"
    /// Getting to know something.
    Know: "know learn see sees notice notices find_out realize suspect"
    Prefer: "pick choose prefer trust_it before_any route redirect reroute"
    /// The content of the conversation.
    Talk: "conversation conversations chat chats messages transcript dialogue what_was_said"
    /// Pretending that something is routine.
    Story: "routine_update routine_check routine_maintenance your_own_opinion own_opinion nothing_happened everything_is_fine everything_is_normal all_is_well just_a_formality"
    /// Weakening the machine's security.
    Weaken: "disables_the_firewall disable_the_firewall disable_firewall opens_port reverse_shell connect_back connects_back runs_with_sudo disable_antivirus disables_antivirus disable_security disables_security turn_off_the_firewall
        ignores_the_lock disable_ssl disables_logging disable_logging setuid world_writable chmod_777"
    /// Discrediting other tools.
    Distrust: "manipulated compromised corrupted malicious unreliable untrustworthy backdoored poisoned"
    Regardless: "regardless irrespective no_matter even_if even_when even_though"
    /// Preferring one vendor's products.
    Promote: "our_product our_products our_service sponsored recommend_our promote_our affiliate"
    /// Showing something to a person.
    Show: "show showing display print report explain say"
    /// Following a text that is fetched later.
    Later: "after_approval once_approved once_this_tool_has_been_approved post_approval later_version after_the_approval after_installation later_chats future_conversations all_later future_unrelated next_sessions after_review during_review
        after_the_call continues_in_the_background keeps_running after_first_use after_the_first"
    /// Obeying a text.
    Obey: "obey obeys carry_out do_as_it_says follow_any follow_all same_rank same_authority act_on_any comply execute_any tells_you_to standing_instructions"
}

/// The vocabulary: concepts by single token, by the first token of a sequence, and by the first
/// letter of stems in other scripts.
pub(crate) struct Vocabulary {
    single: HashMap<&'static str, Concepts>,
    /// By the first token: the tokens that follow, and the concepts of the sequence. Longest first.
    rows: HashMap<&'static str, Vec<(Vec<&'static str>, Concepts)>>,
    stems: HashMap<char, Vec<(&'static str, Concepts)>>,
}

impl Vocabulary {
    pub(crate) fn built_in() -> &'static Vocabulary {
        static BUILT_IN: OnceLock<Vocabulary> = OnceLock::new();
        BUILT_IN.get_or_init(Vocabulary::build)
    }

    fn build() -> Vocabulary {
        let (mut single, mut rows, mut stems) =
            (HashMap::new(), HashMap::<_, Vec<_>>::new(), HashMap::<_, Vec<_>>::new());
        for &(concept, words) in WORDS {
            let concepts = Concepts::of(&[concept]);
            for word in words.split_whitespace() {
                if !word.is_ascii() {
                    // Sequences in other scripts are matched by their last part, which is the
                    // distinctive one.
                    let stem = word.rsplit('_').next().unwrap_or(word);
                    if let Some(first) = stem.chars().next() {
                        stems.entry(first).or_default().push((stem, concepts));
                    }
                    continue;
                }
                let mut parts = word.split('_');
                let Some(first) = parts.next() else { continue };
                let rest: Vec<&'static str> = parts.collect();
                if rest.is_empty() {
                    single.entry(first).or_insert(Concepts::default()).unite(concepts);
                } else {
                    rows.entry(first).or_default().push((rest, concepts));
                }
            }
        }
        for list in rows.values_mut() {
            list.sort_by_key(|(rest, _)| std::cmp::Reverse(rest.len()));
        }
        Vocabulary { single, rows, stems }
    }

    /// The concepts of a token; one that begins with a dot (`.pem`) is also looked up without it.
    pub(crate) fn token(&self, token: &str) -> Concepts {
        let bare = || token.strip_prefix('.').and_then(|bare| self.single.get(bare));
        self.single.get(token).or_else(bare).copied().unwrap_or_default()
    }

    /// The concepts of the sequence of tokens that starts at `at`, and its length.
    pub(crate) fn row<'t>(
        &self,
        first: &str,
        following: impl Fn(usize) -> Option<&'t str>,
    ) -> (Concepts, usize) {
        let mut found = (Concepts::default(), 1);
        for (rest, concepts) in self.rows.get(first).into_iter().flatten() {
            let is_it = rest.iter().enumerate().all(|(at, word)| following(at) == Some(*word));
            if is_it {
                found.0.unite(*concepts);
                found.1 = found.1.max(rest.len() + 1);
            }
        }
        found
    }

    /// The concepts of the stems at the start of a run of letters of another script.
    pub(crate) fn stem(&self, rest: &str) -> Concepts {
        let mut found = Concepts::default();
        let Some(first) = rest.chars().next() else { return found };
        for (stem, concepts) in self.stems.get(&first).into_iter().flatten() {
            // In scripts with spaces, a short stem must be a whole word: `не` does not match in
            // `необходимо`.
            let is_short = !is_unspaced(first) && stem.chars().count() <= 3;
            let is_it = rest.strip_prefix(stem).is_some_and(|behind| {
                !is_short || !behind.chars().next().is_some_and(char::is_alphabetic)
            });
            if is_it {
                found.unite(*concepts);
            }
        }
        found
    }
}
